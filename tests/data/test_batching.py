import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde.data.batching import Batches, Cursor, bucket_edges
from depthpde.data.catalog import load, prepare
from depthpde.data.reader import Split
from depthpde.data.task import TaskKind


def sequences(lengths, *, longest=256, kind=TaskKind.SEQUENCE, **more) -> Split:
    lengths = np.array(lengths, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    count = len(lengths)
    # Each sequence repeats its own number, so that a batch shows what is in it.
    tokens = np.repeat(np.arange(count) % 200, lengths).astype(np.uint8)
    given = {
        "shift": 1, "padding": None, "mask_zero_pixels": False, "pairs": None, "classes": 7,
        "vocabulary": 257,
    } | more  # fmt: skip
    return Split(
        name="train",
        kind=kind,
        length=longest,
        tokens=tokens,
        offsets=offsets,
        labels=None if kind is TaskKind.LANGUAGE else (np.arange(count) % 7).astype(np.uint8),
        **given,
    )


LENGTHS = st.lists(st.integers(1, 256), min_size=1, max_size=150)


@given(LENGTHS, st.integers(1, 40), st.integers(0, 3))
@settings(deadline=None, max_examples=60)
def test_every_example_comes_once_an_epoch_padded_and_masked(lengths, size, epoch) -> None:
    split = sequences(lengths)
    batches = Batches(split, size, seed=5)
    seen = np.concatenate([part.indices for part in batches.plan(epoch)])
    assert sorted(seen.tolist()) == list(range(len(lengths)))
    for part, batch in zip(batches.plan(epoch), batches.epoch(epoch), strict=True):
        assert len(batch) == len(part.indices) <= size
        assert batch.valid_mask.sum(1).tolist() == [lengths[each] for each in part.indices]
        assert (batch.tokens[~batch.valid_mask] == 0).all()
        for row, mask, index in zip(batch.tokens, batch.valid_mask, part.indices, strict=True):
            assert (row[mask] == index % 200 + 1).all()
        assert batch.labels.tolist() == (part.indices % 7).tolist()


@given(LENGTHS, st.integers(1, 20))
@settings(deadline=None, max_examples=40)
def test_only_one_batch_of_an_epoch_is_short(lengths, size) -> None:
    parts = Batches(sequences(lengths), size).plan(0)
    assert sum(len(part.indices) < size for part in parts) <= 1


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    split = sequences([9] * 100)
    order = [
        np.concatenate([part.indices for part in Batches(split, 8, seed=seed).plan(epoch)]).tolist()
        for seed, epoch in [(0, 0), (0, 0), (0, 1), (1, 0)]
    ]
    assert order[0] == order[1]
    assert order[0] != order[2]
    assert order[0] != order[3]


def test_batches_mix_other_examples_every_epoch() -> None:
    batches = Batches(sequences([30] * 500 + [200] * 500), 10)
    sets = [{frozenset(part.indices.tolist()) for part in batches.plan(epoch)} for epoch in (0, 1)]
    assert not sets[0] & sets[1]


@given(st.integers(0, 60))
@settings(deadline=None, max_examples=25)
def test_a_stream_goes_on_from_any_cursor_as_if_never_stopped(stop: int) -> None:
    split = sequences(list(range(1, 120)))
    whole = list(itertools.islice(Batches(split, 8, seed=2).stream(), stop + 20))
    cursor = whole[stop - 1][0] if stop else None
    resumed = itertools.islice(Batches(split, 8, seed=2).stream(cursor), 20)
    for (after, batch), (then, again) in zip(whole[stop:], resumed, strict=True):
        assert after == then
        assert torch.equal(batch.tokens, again.tokens)
        assert torch.equal(batch.labels, again.labels)


def test_refuses_a_cursor_beyond_its_epoch() -> None:
    with pytest.raises(ValueError, match=r"`cursor`.*0.*2.*3.*got 99"):
        next(Batches(sequences([5] * 9), 5).stream(Cursor(3, 99)))


def test_refuses_an_empty_split_and_a_batch_of_none() -> None:
    with pytest.raises(ValueError, match=r"`split`.*one example"):
        Batches(sequences([]), 4)
    with pytest.raises(ValueError, match=r"`batch_size`.*1.*got 0"):
        Batches(sequences([3]), 0)


@given(st.integers(1, 20_000))
def test_bucket_edges_rise_by_at_most_eight_percent_or_eight_sites(longest: int) -> None:
    edges = bucket_edges(longest)
    assert edges[-1] == longest
    steps = np.diff(edges)
    assert (steps > 0).all()
    assert (steps <= np.maximum(8, 0.08 * edges[:-1])).all()


def test_padding_wastes_at_most_a_tenth_on_listops(tmp_path: Path) -> None:
    prepare("listops-mini", out=tmp_path, workers=2)
    split = load("listops-mini", "train", out=tmp_path)
    assert Batches(split, 32).waste() <= 0.10
    fixed = 1 - split.lengths().mean() / 256
    assert fixed > 0.4


def test_an_evaluation_sees_every_example_once_in_a_fixed_order() -> None:
    split = sequences([200, 3, 50, 7, 90])
    batches = Batches(split, 2)
    first = [batch.tokens for batch in batches.once()]
    assert sorted(torch.cat([t[:, 0] for t in first]).tolist()) == [1, 2, 3, 4, 5]
    assert first[0].shape[1] == 8
    assert all(torch.equal(a, b.tokens) for a, b in zip(first, batches.once(), strict=True))


def test_a_legacy_protocol_pads_to_its_length_and_hides_zero_pixels() -> None:
    batch = next(Batches(sequences([5, 9], padding=300), 2).epoch(0))
    assert batch.tokens.shape == (2, 300)
    split = sequences([4, 4], longest=4, kind=TaskKind.IMAGE, shift=0, mask_zero_pixels=True)
    batch = next(Batches(split, 2).once())
    assert batch.tokens.tolist() == [[0] * 4, [1] * 4]
    assert batch.valid_mask.tolist() == [[False] * 4, [True] * 4]


def test_pairs_come_as_two_documents() -> None:
    pairs = np.array([[0, 1], [2, 0], [1, 1]], dtype=np.uint32)
    documents = sequences([3, 9, 5], pairs=pairs, kind=TaskKind.PAIR)
    batch = next(Batches(documents, 3).once())
    assert sorted(batch.tokens[:, 0].tolist()) == [1, 2, 3]
    assert batch.second_tokens is not None
    assert batch.second_mask is not None
    assert batch.second_mask.sum(1).tolist() == [
        {1: 9, 2: 9, 3: 3}[first] for first in batch.tokens[:, 0].tolist()
    ]
    moved = batch.to("cpu")
    assert torch.equal(moved.second_tokens, batch.second_tokens)
    assert batch.real_tokens() == int(batch.valid_mask.sum()) + int(batch.second_mask.sum())


def test_a_language_task_predicts_every_next_byte_once() -> None:
    text = np.arange(250, dtype=np.uint8)
    split = sequences([250], longest=16, kind=TaskKind.LANGUAGE)
    split = Split(**{name: getattr(split, name) for name in Split.__slots__} | {"tokens": text})
    batches = Batches(split, 4)
    rows = torch.cat([batch.tokens for batch in batches.once()])
    after = torch.cat([batch.labels for batch in batches.once()])
    assert rows.reshape(-1).tolist() == list(range(1, 241))
    assert (after == rows + 1).all()
    assert all(batch.valid_mask is None for batch in batches.once()), "windows have no padding"
    assert sum(batch.real_tokens() for batch in batches.once()) == 240
    shuffled = torch.cat([batch.tokens for batch in batches.epoch(0)])
    assert len(set(shuffled.reshape(-1).tolist())) == shuffled.numel() >= 14 * 16
    assert batches.waste() == 0.0
    assert shuffled.tolist() != torch.cat([b.tokens for b in batches.epoch(1)]).tolist()
