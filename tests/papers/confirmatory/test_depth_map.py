"""The map by depth, clipping and rate is of five tuning seeds; fresh seeds test."""

from __future__ import annotations

from dataclasses import replace

from depthpde.papers.confirmatory.depth_map import (
    DEPTHS,
    EXPERIMENT,
    KINDS,
    MAP,
    PROTOCOL,
    TASK,
    rate_map,
)
from depthpde.papers.experiment import Case
from depthpde.records.evidence import Evidence
from depthpde.sweeps.study import tuning_plan
from papers.invented import record


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "b273ecf7ecb99845"


def test_every_depth_is_trained_with_norms_without_and_unclipped_at_every_rate():
    runs = tuning_plan(EXPERIMENT.plan()).runs
    found = {
        (run.model.blocks, str(run.model.stability.norm), run.training.clip, run.seed,
         run.training.learning_rate)
        for run in runs
    }  # fmt: skip
    assert len(found) == len(runs) == len(DEPTHS) * len(KINDS) * 5 * 3


def test_what_norms_gain_is_compared_between_the_deepest_and_the_shallowest():
    growth = PROTOCOL.contrasts[1]
    assert growth.beyond == ("norms, 6 blocks", "no norms, no clipping, 6 blocks")
    assert (growth.variant, growth.against) == (
        "norms, 48 blocks",
        "no norms, no clipping, 48 blocks",
    )


def invented(plan, score):
    """Invent a finished run for each cell of a plan."""
    runs = {}
    for cell, run in plan.cells:
        made = record(TASK, cell.variant, cell.seed, score(run))
        stamped = replace(made, config=made.config | {"study": PROTOCOL.digest})
        runs.setdefault((TASK, cell.variant), {})[cell.seed] = stamped
    labels = tuple(each.label for each in plan.variants)
    return Evidence(
        name=plan.name, question="", baseline=labels[0], tasks=(TASK,), variants=labels,
        words={}, runs=runs, missing=(),
    )  # fmt: skip


def test_the_map_has_a_row_for_each_network_and_a_column_for_each_rate():
    tuning = invented(tuning_plan(EXPERIMENT.plan()), lambda run: 1e4 * run.training.learning_rate)
    cell = (TASK, "no norms, no clipping, 48 blocks @ 0.002")
    lost = tuning.runs[cell][200]
    result = lost.result | {"status": "diverged", "test": None, "trivial": {"majority": 10.0}}
    tuning.runs[cell][200] = replace(lost, result=result, status={"state": "diverged"})
    rows = {row["variant"]: row for row in rate_map(tuning)}
    assert len(rows) == 12
    assert rows["norms, 6 blocks"] == {
        "variant": "norms, 6 blocks", "rate 0.0005": "5.0", "rate 0.001": "10.0",
        "rate 0.002": "20.0",
    }  # fmt: skip
    assert rows["no norms, no clipping, 48 blocks"]["rate 0.002"] == "18.0, 1 diverged"
    assert rate_map(replace(tuning, runs={})) == []


def test_map_and_training_stand_beside_the_tests():
    plan = EXPERIMENT.plan(seeds=PROTOCOL.test_seeds)
    tested = invented(plan, lambda run: float(run.model.blocks + run.seed % 2))
    tuning = invented(tuning_plan(EXPERIMENT.plan()), lambda run: 20.0)
    found = EXPERIMENT.judge(Case(scale="mini", evidence=tested, tuning=tuning))
    assert [row["variant"] for row in found.tables[MAP]] == [e.label for e in plan.variants]
    assert len(found.tables["in training"]) == 12
    alone = EXPERIMENT.judge(Case(scale="mini", evidence=tested))
    assert MAP not in alone.tables, "nothing is said of runs that are not there"
    left_out = "chose rates is left out: no run of depth-map.tuning is here"
    assert left_out in alone.notes[-1]
    assert left_out not in found.notes[-1]
