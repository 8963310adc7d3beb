"""Depth converges to its limit, and not without residuals."""

import pytest

from depthpde.papers.ablation.variants import BOTH, NO_RESIDUAL, TRANSFORMER, label
from depthpde.papers.depth_limit import EXPERIMENT
from depthpde.records.verdicts import Outcome
from papers.tiny import case_of, tiny_plan


def test_depth_converges_to_its_limit_and_not_without_residuals(folders):
    wanted = (label(TRANSFORMER, BOTH), label(TRANSFORMER, NO_RESIDUAL))
    case = case_of(tiny_plan(systems=(TRANSFORMER,), labels=wanted), folders)
    findings = EXPERIMENT.judge(case)
    assert [each.verdict for each in findings.claims] == [Outcome.INCONCLUSIVE] * 4, "one seed"
    rows = findings.tables["relative distance from the limit, by depth"]
    orders = {(row["variant"], row["step"], row["weights"]): float(row["order"]) for row in rows}
    standard = label(TRANSFORMER, BOTH)
    assert orders[standard, "lie", "trained"] == pytest.approx(1.0, abs=0.25)
    assert orders[standard, "strang", "trained"] == pytest.approx(2.0, abs=0.4)
    far = {(row["variant"], row["weights"]): row["L = 64"] for row in rows if row["step"] == "lie"}
    assert float(far[standard, "trained"]) < 0.2
    assert float(far[label(TRANSFORMER, NO_RESIDUAL), "trained"]) > 0.2
