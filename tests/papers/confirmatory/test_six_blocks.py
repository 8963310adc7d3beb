"""Paper B unclipped: every stabilizer in both systems; clipping is a control of two cells."""

from __future__ import annotations

from depthpde.papers.confirmatory.six_blocks import EXPERIMENT, PROTOCOL, TASK


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "5165098465830db0"


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
