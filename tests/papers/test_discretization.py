"""Schemes keep their order on a trained Transformer."""

import pytest

from depthpde.papers.ablation.variants import BOTH, TRANSFORMER, label
from depthpde.papers.discretization import EXPERIMENT, FAITHFUL, KEPT, POOLED, rejudge
from depthpde.records.findings import Findings, JudgedClaim
from depthpde.records.verdicts import Outcome
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
    chosen = list(findings.tables.values())[2]
    assert {row["method"] for row in chosen} == {"auto", "bosh3", "dopri5", "tsit5"}
    for method in ("auto", "tsit5"):
        loose, _, tight = (float(r["distance"]) for r in chosen if r["method"] == method)
        assert tight < 1e-4 < 1 > loose > tight
    stated = float(findings.notes[0].rpartition(" ")[2])
    assert 0 < stated < 1e-7


def stored(claim, interval):
    row = JudgedClaim(
        claim=claim, finding="f", verdict=Outcome.INCONCLUSIVE, n=6,
        effect=sum(interval) / 2, interval=interval,
    )  # fmt: skip
    return Findings(name="discretization", question="?", scale="mini", claims=(row,))


@pytest.mark.parametrize(
    ("claim", "interval", "verdict", "words"),
    [
        (KEPT, (0.2, 0.4), Outcome.CONTRADICTED, "f"),
        (KEPT, (0.2, 0.6), Outcome.INCONCLUSIVE, "f"),
        (FAITHFUL, (-0.1, 0.4), Outcome.INCONCLUSIVE, "0.9 is excluded"),
        (FAITHFUL, (-0.1, 0.95), Outcome.INCONCLUSIVE, "f"),
        ("another", (0.0, 0.1), Outcome.INCONCLUSIVE, "f"),
    ],
)
def test_stored_intervals_are_judged_by_what_a_half_means(claim, interval, verdict, words):
    (row,) = (anew := rejudge(stored(claim, interval), None)).claims
    assert row.verdict is verdict
    assert words in row.finding
    assert POOLED in anew.notes
