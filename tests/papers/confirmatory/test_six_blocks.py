"""Paper B unclipped: every stabilizer in both systems; clipping is a control of two cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from depthpde.papers.ablation.by_depth import ATTENTION, COSINE, LIKE, TRAINING
from depthpde.papers.ablation.signs import sign_scores
from depthpde.papers.ablation.variants import STABILIZERS
from depthpde.papers.confirmatory.six_blocks import EXPERIMENT, PROTOCOL, TASK
from depthpde.papers.experiment import Case
from depthpde.records.evidence import gather
from depthpde.records.protocols.endpoints import COSINE_TO_INPUT
from depthpde.records.record import read_grids, read_records


@pytest.fixture(scope="module")
def stabilization():
    results = Path(__file__).parents[3] / "results"
    return gather(read_grids(results).by_name["stabilization"], read_records(results).found)


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "f2f745f7317882a8"


def test_eight_cells_are_unclipped_and_two_of_them_have_a_clipped_twin():
    plan = EXPERIMENT.plan()
    runs = {cell.variant: run for cell, run in plan.cells if cell.seed == plan.cells[0][0].seed}
    assert sum(run.training.clip is None for run in runs.values()) == 8
    twins = [name for name in runs if name.endswith(", clipped")]
    assert len(twins) == 2
    for name in twins:
        assert runs[name].model == runs[name.removesuffix(", clipped")].model
    assert {run.model.blocks for run in runs.values()} == {6}
    assert {run.task for run in runs.values()} == {TASK}
    assert all(run.model.length == 1000 for run in runs.values())


def test_what_paper_b_reads_by_layer_stands_beside_the_tests(stabilization):
    """The records of `stabilization` as if they were of this plan: same names, same probes."""
    runs = {
        (TASK, variant): {
            seed: replace(run, config=run.config | {"study": PROTOCOL.digest, "seed": seed})
            for seed, run in zip(PROTOCOL.test_seeds, each.values(), strict=True)
        }
        for (task, variant), each in stabilization.runs.items()
        if task == "listops-mini"
    }
    clipped = {f"{name}, clipped" for name in ("Transformer, both", "Transformer, no norm")}
    runs |= {(TASK, name): runs[TASK, name.removesuffix(", clipped")] for name in clipped}
    variants = tuple(each.label for each in EXPERIMENT.variants)
    found = EXPERIMENT.judge(
        Case(
            scale="mini",
            evidence=replace(stabilization, tasks=(TASK,), variants=variants, runs=runs),
        )
    )
    assert [row["variant"] for row in found.tables[COSINE]] == list(variants)
    assert len(found.tables[ATTENTION]) == 6, "older probes of simulators hold no attention"
    assert [row["both systems with"] for row in found.tables[LIKE]] == list(STABILIZERS)
    assert found.tables[TRAINING][0]["diverged"] == "0 of 6"
    drift, growth = found.claims[0], found.claims[2]
    cosines = sign_scores(replace(stabilization, runs=runs), COSINE_TO_INPUT)
    ours, theirs = (cosines[f"Transformer, {name}"][TASK] for name in ("both", "no residual"))
    assert drift.effect == pytest.approx(np.mean([ours[s] - theirs[s] for s in ours]))
    assert drift.finding.startswith("cosine to the input: Transformer, both − Transformer, no res")
    assert growth.effect == pytest.approx(0.52, abs=0.2), "decades, as `stabilization` has them"
