"""What broke is never left out of a comparison, and the first variant stays the first."""

import math
from dataclasses import replace

import pytest

from depthpde.comparison.entrant import recorded
from depthpde.comparison.report import ComparisonReport
from depthpde.records.evidence import gather
from depthpde.records.record import read_grids, read_records
from depthpde.records.scores import Endpoint


@pytest.fixture
def evidence(compared):
    (grid,) = (
        each
        for each in read_grids(compared.results).by_name.values()
        if "diffusion" in {cell.variant for cell in each.cells}
    )
    return gather(grid, read_records(compared.results).found)


def diverged(evidence, variant, seeds=(0, 1)):
    """Let runs of a variant diverge; they keep weights that were tested."""
    (task,) = evidence.tasks
    runs = {
        seed: replace(run, result=dict(run.result) | {"status": "diverged"})
        if seed in seeds
        else run
        for seed, run in evidence.runs[task, variant].items()
    }
    return replace(evidence, runs={**evidence.runs, (task, variant): runs})


def test_a_run_that_diverged_counts_as_the_largest_class(evidence):
    """It counted by the weights that it had kept."""
    found = recorded(diverged(evidence, "diffusion", (1,)), Endpoint.ACCURACY)
    whole = recorded(evidence, Endpoint.ACCURACY)
    (task,) = evidence.tasks
    majority = evidence.runs[task, "diffusion"][1].result["trivial"]["majority"]
    assert found[1].scores == {0: whole[1].scores[0], 1: majority}
    assert [each.diverged for each in found] == [0, 1, 0]
    said = ComparisonReport(task=task, endpoint=Endpoint.ACCURACY, entrants=found)
    assert "diffusion: 1 run diverged, counted as the largest class" in said.diverged()


def test_a_variant_that_has_no_loss_at_all_keeps_its_row(evidence, tmp_path):
    found = recorded(diverged(evidence, "diffusion"), Endpoint.LOSS)
    assert [each.label for each in found] == ["plain", "diffusion", "convolution"]
    assert found[1].scores == {}
    assert math.isnan(found[1].mean)
    report = ComparisonReport(task="waves", endpoint=Endpoint.LOSS, entrants=found)
    assert "diffusion: 2 runs diverged, left out" in report.diverged()
    assert [row[1].text for row in report.table().rows][1] == "–"
    assert "2 runs diverged" in report.save(tmp_path / "page.html").read_text()


def test_without_a_score_of_the_first_variant_nothing_is_compared(evidence):
    """The next variant became the baseline, without a word."""
    with pytest.raises(
        ValueError, match=r"'plain' must have .* test loss, got 2 finished, 2 of them"
    ):
        recorded(diverged(evidence, "plain"), Endpoint.LOSS)


def test_a_first_variant_whose_runs_failed_is_not_to_be_trained_more_gently(evidence):
    (task,) = evidence.tasks
    runs = {cell: each for cell, each in evidence.runs.items() if cell != (task, "plain")}
    with pytest.raises(ValueError, match="got 0 finished, 0 of them diverged; call it again once"):
        recorded(replace(evidence, runs=runs), Endpoint.ACCURACY)
