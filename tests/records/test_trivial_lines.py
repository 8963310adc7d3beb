"""The lines of linear probes, and which of them the committed baselines stay below."""

from __future__ import annotations

from pathlib import Path

import pytest

from depthpde.records.scores import scores_of
from depthpde.records.trivial_lines import PROBES, below, with_probes

DATA_PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_probes_stand_among_the_lines_in_order():
    found = with_probes("image-mini", {"majority": 10.0})
    assert list(found) == ["majority", "grey-level counts", "linear probe of the pixels"]
    assert with_probes("mine", {"b": 2.0, "a": 1.0}) == {"a": 1.0, "b": 2.0}


def test_lines_that_are_not_reached_are_named():
    assert below(20.0, {"high": 30.0, "low": 10.0, "equal": 20.0}) == ["high"]


@pytest.mark.parametrize(
    ("task", "missed"),
    [
        ("text-mini", ["bag of bytes"]),
        ("retrieval-mini", ["byte counts of both"]),
        ("image-mini", ["linear probe of the pixels"]),
        ("pathfinder-mini", []),
    ],
)
def test_three_of_four_baselines_are_below_a_linear_model(gathered, task, missed):
    runs = scores_of(gathered["placement"])["baseline"][task]
    assert below(sum(runs.values()) / len(runs), PROBES[task]) == missed


def test_the_data_page_holds_the_same_numbers():
    page = DATA_PAGE.read_text(encoding="utf-8").split("Linear probes")[1]
    for lines in PROBES.values():
        for value in lines.values():
            assert f"{value:.2f}" in page
