"""Paper B's main experiment, whole, with models and data as small as can be."""

from pathlib import Path

import pytest

from depthpde.papers import depth_limit, discretization
from depthpde.papers.ablation.information import sliced_table, where_believed
from depthpde.papers.ablation.variants import BOTH, read_ablation
from depthpde.papers.stabilization import EXPERIMENT
from depthpde.records.evidence import gather
from depthpde.records.record import read_grids, read_records
from depthpde.records.verdicts import Outcome
from depthpde.sweeps.scale import Scale
from papers.tiny import case_of, tiny_plan


def test_quick_and_mini_runs_differ_in_size_only():
    quick, mini = (EXPERIMENT.plan(scale) for scale in (Scale.QUICK, Scale.MINI))
    assert [each.label for each in quick.variants] == [each.label for each in mini.variants]
    assert len(quick.runs) == 24
    assert {run.model.blocks for run in mini.runs} == {6}
    assert len(EXPERIMENT.plan(Scale.FULL, seeds=2).runs) == 48


def test_the_other_experiments_share_the_runs_of_stabilization():
    known = {run.id for run in EXPERIMENT.plan(Scale.MINI).runs}
    for each in (depth_limit.EXPERIMENT, discretization.EXPERIMENT):
        assert {run.id for run in each.plan(Scale.MINI).runs} <= known


def test_stabilization_ends_in_its_table(folders):
    lines = []
    findings = EXPERIMENT.judge(case_of(tiny_plan(), folders, log=lines.append))
    assert lines == ["measuring 8 models", "comparing the two systems layer by layer"]
    assert len(findings.claims) == 14
    assert {each.verdict for each in findings.claims} == {Outcome.INCONCLUSIVE}, "one seed"
    rows = findings.tables["by stabilizer (mean ± half the 95 % interval, last layer)"]
    assert [row["variant"] for row in rows] == [each.label for each in tiny_plan().variants]
    assert "Transformer, no residual" in findings.text()


@pytest.fixture(scope="module")
def committed():
    results = Path(__file__).parents[2] / "results"
    grid = read_grids(results).by_name["stabilization"]
    return gather(grid, read_records(results).found)


def test_sliced_information_is_there_after_training_and_not_before(committed):
    found = read_ablation(committed)
    rows = {
        row["when"]: row
        for row in sliced_table(found)
        if row["stabilizer"] == BOTH and row["layer"] == 6
    }
    assert rows["trained"]["beyond its null (T;Y)"] == "6/6"
    assert rows["untrained"]["beyond its null (T;Y)"] == "0/6"
    assert "trained models of 144 runs" in where_believed(found)
