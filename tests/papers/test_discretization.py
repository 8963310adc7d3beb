"""Schemes keep their order on a trained Transformer."""

import pytest

from depthpde.papers.ablation.variants import BOTH, TRANSFORMER, label
from depthpde.papers.discretization import EXPERIMENT
from papers.tiny import case_of, tiny_plan


def test_schemes_keep_their_order_on_a_transformer(folders):
    case = case_of(tiny_plan(labels=[label(TRANSFORMER, BOTH)]), folders)
    findings = EXPERIMENT.judge(case)
    rows = next(iter(findings.tables.values()))
    orders = {row["scheme"]: float(row["order"]) for row in rows}
    for method, order in {"euler": 1, "lie": 1, "strang": 2, "heun": 2, "rk4": 4}.items():
        assert orders[method] == pytest.approx(order, abs=0.25 * order), method
    stiff = {row["scheme"]: row for row in list(findings.tables.values())[1]}
    assert float(stiff["euler"]["log10 energy ratio"]) > 2
    assert float(stiff["backward_euler"]["log10 energy ratio"]) < 1
