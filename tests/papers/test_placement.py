"""Paper A's positions are judged by direction, size and number of pairs, and by nothing else."""

from __future__ import annotations

import dataclasses

import pytest

from depthpde.papers.placement import CONTROLS, FOUND_BY_ITSELF, SCEPTICS
from depthpde.records.verdicts import Outcome
from papers.invented import POSITIONS, evidence, judge, verdicts


def test_every_control_is_asked_about():
    assert {*SCEPTICS, FOUND_BY_ITSELF} == {each.label for each in CONTROLS}


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        (4.5, Outcome.SUPPORTED),
        (1.5, Outcome.SMALLER),
        (0.0, Outcome.EQUIVALENT),
        (-3.0, Outcome.CONTRADICTED),
    ],
)
def test_a_gain_is_confirmed_only_in_direction_and_size(points, wanted):
    assert verdicts({"after embedding": points})[0] is wanted


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        (-2.8, Outcome.SUPPORTED),
        (-1.0, Outcome.SMALLER),
        (0.0, Outcome.EQUIVALENT),
        (2.8, Outcome.CONTRADICTED),
    ],
)
def test_a_loss_is_confirmed_only_in_direction_and_size(points, wanted):
    assert verdicts({"after attention": points})[1] is wanted


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_few_seeds_decide_nothing_however_many_tasks(seeds):
    effects = {"after embedding": 9.0} | dict.fromkeys(POSITIONS[1:], 0.0)
    five = tuple(f"task {number}" for number in range(5))
    found = judge(evidence(effects, seeds=seeds, tasks=five)).claims
    assert {each.verdict for each in found} == {Outcome.INCONCLUSIVE}
    assert verdicts(effects, seeds=6, tasks=five)[0] is Outcome.SUPPORTED


def test_a_task_without_pairs_leaves_the_average_undecided():
    found = evidence({"after embedding": 9.0})
    runs = {cell: each for cell, each in found.runs.items() if cell[0] != "image-mini"}
    claim = judge(dataclasses.replace(found, runs=runs)).claims[0]
    assert claim.verdict is Outcome.INCONCLUSIVE
    assert "0 pairs on image-mini, 6 on every task are wanted" in claim.finding


def test_nothing_finished_is_undecided_and_says_so():
    found = judge(evidence({})).claims[0]
    assert found.verdict is Outcome.INCONCLUSIVE
    assert "no pair is finished" in found.finding
    assert found.n == 0


def test_the_best_position_must_be_apart_from_the_next():
    clear = {"after embedding": 3.0, "before norm": 1.0, "in heads": 0.0}
    assert verdicts(clear)[2] is Outcome.SUPPORTED
    close = {"after embedding": 1.0, "before norm": 1.0}
    found = judge(evidence(close, spread=0.6)).claims[2]
    assert found.verdict is Outcome.EQUIVALENT
    assert "− the best other, before norm" in found.finding
    assert verdicts({"after embedding": 0.0, "before norm": 2.0})[2] is not Outcome.SUPPORTED
    worse = judge(evidence({"after embedding": 2.0, "before norm": 4.0})).claims[2]
    assert worse.verdict is Outcome.CONTRADICTED
    assert "not the largest mean" in worse.finding


def test_what_follows_a_gate_that_is_not_shown_is_not_reached():
    effects = {"after embedding": 3.0, "after attention": 0.0, "before norm": 1.0}
    found = judge(evidence(effects)).claims
    assert found[1].verdict is Outcome.EQUIVALENT
    assert found[2].verdict is Outcome.INCONCLUSIVE
    assert "not reached: diffusion after attention lowers" in found[2].finding


def test_more_than_local_mixing_is_judged_against_the_control_not_the_baseline():
    same = {"after embedding": 3.0, "conv from blur": 3.0}
    better = {"after embedding": 3.0, "conv from blur": 1.0}
    assert verdicts(same)[3] is Outcome.EQUIVALENT
    assert verdicts(better)[3] is Outcome.CONTRADICTED
