"""Beside the claims of placement: numbers of the committed records, and nothing from nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from depthpde.papers.claims import escape_claim
from depthpde.papers.placement import GAIN
from depthpde.papers.placement_tables import (
    along_training,
    escape_table,
    fragile,
    line_table,
    own_digits,
)
from depthpde.records.evidence import gather
from depthpde.records.record import read_grids, read_records
from depthpde.records.verdicts import Outcome
from papers.invented import evidence

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def placement():
    return gather(read_grids(RESULTS).by_name["placement"], read_records(RESULTS).found)


def test_the_verdict_turns_on_pathfinder_and_on_image(placement):
    rows = {row["left out"]: row for row in fragile(placement, "after embedding", GAIN)}
    assert [row["verdict"] for row in rows.values()].count("smaller than claimed") == 4
    assert rows["Pathf."]["effect [95 %]"] == "+1.12 [+0.44, +1.81]"
    assert rows["Pathf. and Image"]["verdict"] == "inconclusive"
    whole = next(row for name, row in rows.items() if name.startswith("no task"))
    assert whole["effect [95 %]"].startswith("−3.48")
    assert whole["verdict"] == "inconclusive"


def test_without_a_task_learned_at_once_tasks_are_left_out_one_by_one():
    three = evidence({"after embedding": 2.0}, tasks=("a", "b", "c"))
    assert [row["left out"] for row in fragile(three, "after embedding", GAIN)] == [
        "no task", "a", "b", "c",
    ]  # fmt: skip


def test_the_gain_on_listops_grows_along_training(placement):
    row = along_training(placement, "after embedding")[0]
    assert row["update: validation difference"] == (
        "500: −0.33 · 1000: +0.75 · 1500: +1.41 · 2000: +1.66"
    )


def test_escapes_are_counted_and_tested(placement):
    rows = {row["variant"]: row for row in escape_table(placement)}
    assert rows["baseline"]["left the plateau"] == "6 of 6"
    assert rows["after embedding"] == {
        "variant": "after embedding",
        "left the plateau": "2 of 6",
        "half by update": "–",
        "log-rank p": "0.094",
    }


def test_the_gain_lies_where_the_root_has_digits_of_its_own(placement):
    (row,) = own_digits(placement, ["after embedding"])
    numbers = list(row.values())[1:]
    assert numbers[0].startswith("+0.23 [")
    assert numbers[2].startswith("+2.50 [")


def test_nothing_is_told_of_nothing():
    bare = evidence({"after embedding": 1.0})
    assert fragile(bare, "after embedding", GAIN) == []
    assert fragile(bare, "nobody", GAIN) == []
    assert along_training(bare, "after embedding") == []
    assert escape_table(bare) == []
    assert own_digits(bare, ["after embedding"]) == []


def test_the_baseline_stands_beside_what_needs_no_sequence_model(placement):
    rows = {row["task"]: row for row in line_table(placement)}
    assert "bag of bytes 58.0" in rows["Text"]["needs no sequence model"]
    assert rows["Text"]["not yet reached"] == "bag of bytes"
    assert "linear probe of the pixels" in rows["Image"]["not yet reached"]
    assert rows["Pathf."]["not yet reached"] == "–"
    assert line_table(evidence({}, tasks=("nothing is known of it",))) == []


def test_a_delay_is_judged_by_the_curves_of_the_runs(placement):
    (later,) = escape_claim(placement, "c", "after embedding", sooner=False)
    assert "2 of 6 runs left it, 6 of 6 of the baseline's" in later.finding
    assert later.verdict is Outcome.INCONCLUSIVE
    assert 0.05 < later.p < 0.2
    assert later.effect > 0, "updates later"
