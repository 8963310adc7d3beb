"""Paper A's positions are judged by direction, size and number of pairs, and by nothing else."""

from __future__ import annotations

import dataclasses

import pytest

from depthpde.papers.placement import CONTROLS, SCEPTICS
from depthpde.records.findings import FindingVerdict
from papers.invented import POSITIONS, evidence, judge, verdicts


def test_every_control_is_asked_about():
    assert set(SCEPTICS) == {each.label for each in CONTROLS}


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        (4.5, FindingVerdict.CONFIRMED),
        (1.5, FindingVerdict.PARTLY),
        (0.0, FindingVerdict.NOT_CONFIRMED),
        (-3.0, FindingVerdict.NOT_CONFIRMED),
    ],
)
def test_a_gain_is_confirmed_only_in_direction_and_size(points, wanted):
    assert verdicts({"after embedding": points})[0] is wanted


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        (-2.8, FindingVerdict.CONFIRMED),
        (-1.0, FindingVerdict.PARTLY),
        (0.0, FindingVerdict.NOT_CONFIRMED),
        (2.8, FindingVerdict.NOT_CONFIRMED),
    ],
)
def test_a_loss_is_confirmed_only_in_direction_and_size(points, wanted):
    assert verdicts({"after attention": points})[1] is wanted


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_few_seeds_decide_nothing_however_many_tasks(seeds):
    effects = {"after embedding": 9.0} | dict.fromkeys(POSITIONS[1:], 0.0)
    five = tuple(f"task {number}" for number in range(5))
    found = judge(evidence(effects, seeds=seeds, tasks=five)).claims
    assert {each.verdict for each in found} == {FindingVerdict.UNDECIDED}
    assert verdicts(effects, seeds=6, tasks=five)[0] is FindingVerdict.CONFIRMED


def test_a_task_without_pairs_leaves_the_average_undecided():
    found = evidence({"after embedding": 9.0})
    runs = {cell: each for cell, each in found.runs.items() if cell[0] != "image-mini"}
    claim = judge(dataclasses.replace(found, runs=runs)).claims[0]
    assert claim.verdict is FindingVerdict.UNDECIDED
    assert "0 pairs on image-mini, 6 on every task are wanted" in claim.finding


def test_nothing_finished_is_undecided_and_says_so():
    found = judge(evidence({})).claims[0]
    assert found.verdict is FindingVerdict.UNDECIDED
    assert "no pair is finished" in found.finding
    assert found.n == 0


def test_the_best_position_must_be_apart_from_the_next():
    clear = {"after embedding": 3.0, "before norm": 1.0, "in heads": 0.0}
    assert verdicts(clear)[2] is FindingVerdict.CONFIRMED
    close = {"after embedding": 1.0, "before norm": 1.0}
    found = judge(evidence(close, spread=0.6)).claims[2]
    assert found.verdict is FindingVerdict.NOT_CONFIRMED
    assert found.finding.startswith("the largest mean of the seven, but not apart")
    assert verdicts({"after embedding": 0.0, "before norm": 2.0})[2] is FindingVerdict.NOT_CONFIRMED


def test_more_than_local_mixing_is_judged_against_the_control_not_the_baseline():
    same = {"after embedding": 3.0, "conv from blur": 3.0}
    better = {"after embedding": 3.0, "conv from blur": 1.0}
    assert verdicts(same)[3] is FindingVerdict.NOT_CONFIRMED
    assert verdicts(better)[3] is FindingVerdict.CONFIRMED
