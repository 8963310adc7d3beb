from __future__ import annotations

import pytest

from depthpde.web.filters import LONGEST, BoardFilter


def test_an_address_is_read_and_written_again() -> None:
    chosen = BoardFilter.read({"grid": "a b", "state": "failed", "q": " no  memory ", "page": "3"})
    assert chosen == BoardFilter(grid="a b", state="failed", q="no memory", page=3)
    assert chosen.address() == "/?grid=a+b&state=failed&q=no+memory&page=3"
    assert chosen.address(page=1, q="") == "/?grid=a+b&state=failed"
    assert BoardFilter().address() == "/"


@pytest.mark.parametrize(
    "query",
    [{"state": "<b>"}, {"sort": "; DROP"}, {"page": "-1"}, {"page": "1e9"}, {"page": "²"}, {}],
)
def test_what_is_none_of_ours_counts_as_nothing(query: dict[str, str]) -> None:
    assert BoardFilter.read(query) == BoardFilter()


def test_a_text_without_end_is_cut() -> None:
    assert len(BoardFilter.read({"q": "a" * 10**6}).q) == LONGEST


def test_tables_are_shown_until_single_runs_are_asked_for() -> None:
    assert not BoardFilter(grid="g", task="t", page=2).lists
    assert BoardFilter(state="done").lists
    assert BoardFilter(q="x").lists
    assert BoardFilter(sort="newest").lists
