"""Every question can be asked, and what two of them ask alike is computed once."""

from __future__ import annotations

import pytest

from depthpde.models.position import Position
from depthpde.papers.placement import START
from depthpde.papers.registry import QUESTIONS
from depthpde.sweeps.scale import Scale, arena_tasks


@pytest.fixture(scope="module")
def plans():
    return {name: planner(Scale.MINI, seeds=2) for name, planner in QUESTIONS.items()}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("scale", Scale)
def test_every_plan_has_valid_runs_and_a_baseline(name, scale):
    plan = QUESTIONS[name](scale, seeds=1)
    assert plan.name == name
    assert plan.question.endswith(("?", "."))
    labels = [each.label for each in plan.variants]
    assert plan.baseline in labels
    assert all(each.words for each in plan.variants)
    assert len(plan.cells) == len(labels) * len(plan.bases)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_row_of_a_plan_is_another_run(plans, name):
    assert len(plans[name].runs) == len(plans[name].cells)


def test_a_seed_is_finished_before_the_next_begins(plans):
    seeds = [cell.seed for cell, _ in plans["placement"].cells]
    assert seeds == sorted(seeds)


def test_placement_asks_for_all_seven_positions_alone_and_for_all_at_once(plans):
    runs = [run for run in plans["placement"].runs if run.task == "text-mini" and run.seed == 0]
    placed = [tuple(each.position for each in run.model.placements) for run in runs]
    assert all((position,) in placed for position in Position)
    assert tuple(Position) in placed
    learned = next(run for run in runs if len(run.model.placements) == 7)
    assert all(each.layer.initial_ratio == 0.0 for each in learned.model.placements)


def test_the_widest_reach_has_a_control_that_learns_nothing(plans):
    runs = {run.id: run for run in plans["multiscale"].runs if run.task == "text-mini"}
    (fixed,) = {run.model.layer for run in runs.values() if run.model.layer.kind == "blur"}
    learned = max(run.model.layer.steps or 1 for run in runs.values())
    assert fixed.steps == learned == 16
    assert fixed.initial_ratio == START


def test_what_two_questions_share_is_computed_once(plans):
    ids = {name: {run.id for run in plan.runs} for name, plan in plans.items()}
    tasks, seeds = 5, 2
    # baseline and one-step diffusion after the embedding
    assert len(ids["placement"] & ids["multiscale"]) == 2 * tasks * seeds
    # ListOps: the same two, and one-step diffusion at the six other positions
    assert len(ids["placement"] & ids["multiscale-positions"]) == 8 * seeds
    # learned sites with and without diffusion, rotary without, on two tasks
    assert len(ids["placement"] & ids["positional"]) == 3 * 2 * seeds
    assert ids["commutation"] < ids["placement"]
    # baseline, two explicit, two branches on two tasks
    assert len(ids["placement"] & ids["ways"]) == 5 * 2 * seeds


def test_the_five_tasks_are_those_of_the_arena_in_either_size():
    assert arena_tasks(Scale.FULL) == ("listops", "text", "retrieval", "image", "pathfinder")
    assert all(name.endswith("-mini") for name in arena_tasks(Scale.QUICK))
