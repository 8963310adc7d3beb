"""Escape times of the committed runs on Pathfinder."""

from __future__ import annotations

from depthpde.records.escapes import LEARNED_AT_ONCE, escape_times
from depthpde.records.statistics.survival import kaplan_meier
from depthpde.records.verdicts import Outcome, judge_escape

TASK = "pathfinder-mini"


def test_every_baseline_escapes_and_two_of_six_with_diffusion_do(committed):
    grids, records = committed
    found = escape_times(grids["placement"], records, TASK, LEARNED_AT_ONCE[TASK])
    assert set(found) == set(grids["placement"].variants)
    assert [each.escaped for each in found["baseline"].values()] == [True] * 6
    assert sum(each.escaped for each in found["after embedding"].values()) == 2
    assert kaplan_meier(list(found["baseline"].values())).median == 300
    assert kaplan_meier(list(found["after embedding"].values())).median is None


def test_with_three_times_the_updates_diffusion_is_shown_to_be_later(committed):
    grids, records = committed
    found = escape_times(grids["pathfinder-longer"], records, TASK, LEARNED_AT_ONCE[TASK])
    late = judge_escape(found["after embedding"], found["baseline"], sooner=False)
    assert late.outcome is Outcome.SUPPORTED
    assert late.p == 2.0**-5
    assert late.effect == 600


def test_other_tasks_and_missing_runs_are_left_out(committed):
    grids, _ = committed
    assert escape_times(grids["placement"], {}, TASK, 57.2) == {}
    assert escape_times(grids["positional"], {}, "none", 57.2) == {}
