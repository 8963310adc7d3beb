from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthpde.data.ragged import ragged, rows

TEXTS = st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=20)


def pieces(joined) -> list[bytes]:
    return [joined.tokens[a:b].tobytes() for a, b in pairwise(joined.offsets)]


@given(TEXTS, st.data())
def test_taking_and_cutting_are_what_they_are_on_lists(texts, data) -> None:
    joined = ragged(texts)
    assert pieces(joined) == texts
    chosen = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=10))
    assert pieces(joined.take(np.array(chosen, dtype=np.int64))) == [texts[i] for i in chosen]
    length = data.draw(st.integers(1, 25))
    assert pieces(joined.cut(length)) == [text[:length] for text in texts]


@given(st.lists(st.lists(st.integers(0, 14), min_size=1, max_size=9).map(bytes), min_size=1))
def test_ending_moves_symbols_up_by_two_and_adds_one(texts) -> None:
    wanted = [bytes(symbol + 2 for symbol in text[:5]) + b"\x01" for text in texts]
    assert pieces(ragged(texts).ended(6)) == wanted


def test_refuses_to_end_sequences_of_all_bytes() -> None:
    with pytest.raises(ValueError, match="`tokens` must be below 254"):
        ragged([b"\xff"]).ended(9)


def test_an_empty_text_becomes_a_line_feed_and_rows_keep_their_length() -> None:
    assert pieces(ragged([b"", b"a"])) == [b"\n", b"a"]
    assert pieces(rows(np.arange(6, dtype=np.uint8).reshape(2, 3))) == [b"\0\1\2", b"\3\4\5"]
    assert len(rows(np.zeros((0, 3), dtype=np.uint8))) == 0
