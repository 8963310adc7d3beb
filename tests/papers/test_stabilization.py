"""Paper B's main experiment, whole, with models and data as small as can be."""

from depthpde.papers import depth_limit, discretization
from depthpde.papers.stabilization import EXPERIMENT
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
