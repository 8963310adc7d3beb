"""Every question can be asked, and what two of them ask alike is computed once."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from depthpde.models.position import Position
from depthpde.papers.confirmatory import depth_map
from depthpde.papers.placement import START
from depthpde.papers.registry import EXPERIMENTS, judge_all
from depthpde.records.findings import Findings
from depthpde.records.record import read_grids
from depthpde.records.verdicts import Outcome
from depthpde.sweeps.scale import Scale, arena_tasks
from depthpde.sweeps.study import chosen_rates, confirmation_plan, passed_plan, tuning_plan
from papers.confirmatory.test_depth_map import invented
from papers.invented import evidence, judge

WITH_RUNS = [name for name, each in EXPERIMENTS.items() if each.variants]
RESULTS = Path(__file__).parents[2] / "results"
IDS = {
    "placement": ("f55161fe57777400", "6b4a536ee27afb55", "43f5b336b266bb4f"),
    "multiscale": ("b0c2685222b14d76", "5650fcae10a98a93", "a450834ed7ce30e9"),
    "multiscale-positions": ("a033f94e990de8ce", "0db440cefd919664", "7faa16494b8e6f78"),
    "positional": ("e9bc6758beaa2e69", "886de0998153e93e", "6e64c58a378106a8"),
    "ways": ("9e269499d6549b27", "09cc5f390198b6f9", "81c848db567c1aa0"),
    "commutation": ("64669960f8794ab0", "dff3dd2ed0a03a87", "942fb3dad722fb05"),
    "stabilization": ("84e11f236479cc49", "7f4e4e8d6f67ac63", "4e1c45cb69188bc4"),
    "discretization": ("7b20391dfc4d947d", "6fd3df91cd398157", "2554adad3c962c92"),
    "depth_limit": ("505c1734cc705cd4", "8f4a83929e48e6f2", "404e407fa2893b4a"),
    "architectures": ("661dd7667444d548", "01cbdbe0f7fab015", "811a4219a37e1df6"),
    "pathfinder": ("6ef13ad2bb5516c0", "cc2186aee952bd6c", "cc2186aee952bd6c"),
    "stencil": ("413bdb9a473874f5", "2de6b5f6202799dd", "2de6b5f6202799dd"),
    "medium": ("c53975d014580620", "2b09fcd6bc5098b7", "2b09fcd6bc5098b7"),
    "noise": ("e83e7cbeb22641c0", "f34b21fe67960160", "f34b21fe67960160"),
    "few-data": ("08a34d04339f5222", "37b7bb21d8329b3f", "37b7bb21d8329b3f"),
    "six-blocks": ("c021734fe4c5d0b9", "3b80c61ce0fc833c", "3b80c61ce0fc833c"),
    "depth-map": ("088901177fd083cb", "2664025e0e7fd500", "2664025e0e7fd500"),
    "schemes": ("b48eee4abe57251a", "ff9cd6239e1f32d3", "ff9cd6239e1f32d3"),
    "resolution": ("9dddbfcafa69b7b3", "dad5b6f6024c1c11", "dad5b6f6024c1c11"),
    "length": ("e3d0a6d50010cd18", "3f587774c5418986", "3f587774c5418986"),
    "recall": ("ac108918b1631766", "0a8edb0b46d4ac59", "0a8edb0b46d4ac59"),
    "locality": ("8e607fb1cadaf157", "59f5af26aa092cf5", "59f5af26aa092cf5"),
    "rivals": ("6c817819090795fe", "fb3e3734d370fe9c", "fb3e3734d370fe9c"),
    "networks": ("0c3be9f4a67cb718", "3810e28aab6bd173", "3810e28aab6bd173"),
}
"""Name → digest of every cell of its plan at each scale, and of the id of its run."""


@pytest.fixture(scope="module")
def plans():
    return {name: EXPERIMENTS[name].plan(Scale.MINI, seeds=2) for name in WITH_RUNS}


def digest(plan):
    cells = [f"{cell.task}|{cell.variant}|{cell.seed}|{cell.run}" for cell, _ in plan.cells]
    return hashlib.sha256("\n".join(cells).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", WITH_RUNS)
def test_the_ids_of_all_runs_are_what_they_always_were(name):
    """A run's id names its record: one that changes orphans what was computed."""
    assert tuple(digest(EXPERIMENTS[name].plan(scale)) for scale in Scale) == IDS[name]


def test_the_committed_records_are_those_that_the_experiments_plan():
    """Every cell of a committed grid of an experiment is a cell of its plan, with the same id."""
    known = {n: g for n, g in read_grids(RESULTS).by_name.items() if n in EXPERIMENTS}
    assert len(known) > 5
    for name, grid in known.items():
        experiment = EXPERIMENTS[name]
        tasks = None if experiment.fixed_tasks else sorted({cell.task for cell in grid.cells})
        seeds = sorted({cell.seed for cell in grid.cells})
        plan = experiment.plan(Scale.MINI, seeds=seeds, tasks=tasks)
        if plan.study is not None:  # each variant at the rate that the committed tuning runs chose
            plan = passed_plan(plan, RESULTS)
            rates = chosen_rates(plan, RESULTS)
            plan = confirmation_plan(plan, rates, plan.study.looks[-1])
        assert set(grid.cells) <= set(plan.grid.cells), name


def test_reading_the_registry_needs_no_torch():
    code = "import sys, depthpde.papers.registry; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


@pytest.mark.parametrize("name", WITH_RUNS)
@pytest.mark.parametrize("scale", Scale)
def test_every_plan_has_valid_runs_and_a_baseline(name, scale):
    plan = EXPERIMENTS[name].plan(scale, seeds=1)
    assert plan.name == name
    assert plan.question.endswith(("?", "."))
    labels = [each.label for each in plan.variants]
    assert plan.baseline in labels
    assert all(each.words for each in plan.variants)
    assert len(plan.cells) == len(labels) * len(plan.bases)


@pytest.mark.parametrize("name", WITH_RUNS)
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


def test_a_grid_of_ones_own_has_no_claims():
    assert judge_all([evidence({}, name="mine")], []) == ()


def test_an_experiment_is_given_the_runs_that_chose_its_rates():
    plan = EXPERIMENTS["depth-map"].plan(seeds=depth_map.PROTOCOL.test_seeds)
    tested, tuning = (invented(each, lambda run: 20.0) for each in (plan, tuning_plan(plan)))
    assert tuning.name == "depth-map.tuning"
    (found,) = judge_all([tuning, tested], [])
    assert len(found.tables[depth_map.MAP]) == 12
    (alone,) = judge_all([tested], [])
    assert depth_map.MAP not in alone.tables


@pytest.mark.parametrize(
    ("stored", "scale"), [(None, "mini"), ("full", "mini"), ("quick", "quick")]
)
def test_the_size_of_an_experiment_under_a_protocol_is_no_choice(stored, scale):
    """`tasks` without -mini: their names do not tell the size."""
    grid = evidence({"rotary": 1.0}, name="stencil", tasks=("text", "image"))
    before = [Findings(name="stencil", question="?", scale=stored, claims=())] if stored else []
    (found,) = judge_all([grid], before)
    assert found.scale == scale


def test_a_grid_is_judged_by_its_runs_whatever_was_stored():
    stored = [
        judge(evidence({}), "quick"),
        Findings(name="efficiency", question="?", scale="mini", claims=()),
    ]
    grids = [evidence({"after embedding": 4.5}), evidence({}, name="mine")]
    found = judge_all(grids, stored)
    assert [each.name for each in found] == ["placement", "efficiency"]
    assert found[0].scale == "quick"
    assert judge_all(grids, [])[0].scale == "mini"
    assert found[0].claims[0].verdict is Outcome.SUPPORTED
