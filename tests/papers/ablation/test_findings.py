"""Claims of the ablation follow what was measured, and only that."""

import json
from dataclasses import replace

from depthpde.papers import stabilization
from depthpde.papers.ablation.findings import (
    HUNDREDFOLD,
    ablation_claims,
    ablation_table,
    growths,
)
from depthpde.papers.ablation.variants import (
    BOTH,
    NO_NORM,
    NO_RESIDUAL,
    SIMULATOR,
    STABILIZERS,
    TRANSFORMER,
    Ablation,
    Measured,
    label,
)
from depthpde.papers.claims import undecided
from depthpde.records.evidence import Evidence
from depthpde.records.findings import Findings
from depthpde.records.record import read_record
from depthpde.records.verdicts import Outcome
from papers.tiny import tiny_plan


def fabricated(tmp_path, drift, rank, gradient, accuracy, diverged=()) -> Ablation:
    """Make up what was measured, six seeds of each variant, with a little noise.

    What diverged did so before its first point.
    """
    plan = tiny_plan(seeds=6)
    runs = {}
    for cell, run in plan.cells:
        folder = tmp_path / run.id
        folder.mkdir(exist_ok=True)
        config = {"format": 1, "id": run.id, "label": run.label, "config": run.to_dict()}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "environment.json").write_text("{}")
        stabilizer = cell.variant.split(", ")[1]
        noise = 0.01 * cell.seed
        status = "diverged" if stabilizer in diverged else "done"
        result = {"format": 1, "status": status, "test": {"accuracy": accuracy[stabilizer] + noise}}
        if accuracy[stabilizer] is NONE:
            result["test"] = None
        (folder / "result.json").write_text(json.dumps(result | {"parameters": 1, "id": run.id}))
        point = {"kind": "point", "gradient_norm": gradient[stabilizer] * (1 + noise)}
        logged = "" if stabilizer in diverged else json.dumps(point) + "\n"
        (folder / "metrics.jsonl").write_text(logged)
        at = {
            "centred": [1.0, drift[stabilizer] + noise],
            "rank": [1.0, rank[stabilizer] * (1 + noise)],
            "token": [0.0, 0.5],
            "gradient": [gradient[stabilizer] * (1 + noise), 1.0],
            "lyapunov": 0.1,
            "information": None,
        }
        seen = {"start": at, "end": at}
        runs[cell.task, cell.variant, cell.seed] = Measured(read_record(folder), seen)
    return Ablation(plan, runs)


NONE = float("nan")
"""An accuracy that there is none of."""


def by_claim(found: Ablation) -> dict[str, Outcome]:
    claims = ablation_claims(found, [TRANSFORMER])
    names = ("drift", "rank", "explosion", "amplification", "accuracy")
    return {name: each.verdict for name, each in zip(names, claims, strict=True)}


def test_a_collapse_without_residuals_is_found(tmp_path):
    both = dict.fromkeys(STABILIZERS, 1.0)
    found = fabricated(
        tmp_path,
        drift=both | {BOTH: 0.8, NO_RESIDUAL: 0.0},
        rank=both | {NO_RESIDUAL: 1e-4},
        gradient=both | {NO_NORM: 1000.0, "neither": 1e-5},
        accuracy=dict.fromkeys(STABILIZERS, 20.0) | {BOTH: 60.0},
    )
    assert set(by_claim(found).values()) == {Outcome.SUPPORTED}
    row = ablation_table(found)[1]
    assert row["variant"] == label(TRANSFORMER, NO_RESIDUAL)
    assert row["diverged"] == "0/6"


def test_where_nothing_happens_nothing_is_confirmed(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    verdicts = by_claim(fabricated(tmp_path, same, same, same, same))
    assert set(verdicts.values()) <= {Outcome.EQUIVALENT, Outcome.INCONCLUSIVE}
    assert verdicts["drift"] is Outcome.EQUIVALENT


def test_a_drift_that_leaves_something_is_not_catastrophic(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    found = fabricated(tmp_path, same | {BOTH: 0.9, NO_RESIDUAL: 0.4}, same, same, same)
    assert by_claim(found)["drift"] is Outcome.SMALLER


def test_divergence_is_the_explosion_it_is_the_sign_of(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    gone = same | {BOTH: 0.9, NO_RESIDUAL: 0.0}  # the gates before it are open
    found = fabricated(tmp_path, gone, same | {NO_RESIDUAL: 1e-4}, same, same, diverged=(NO_NORM,))
    claim = ablation_claims(found, [TRANSFORMER])[2]
    assert (claim.verdict, claim.n) == (Outcome.SUPPORTED, 6)
    assert "no norm 6/6" in claim.finding
    backwards = growths(found, label(TRANSFORMER, BOTH), label(TRANSFORMER, NO_NORM))
    assert backwards == {"listops-mini": [-HUNDREDFOLD] * 6}
    neither = growths(found, label(TRANSFORMER, NO_NORM), label(SIMULATOR, NO_NORM))
    assert neither == {"listops-mini": [0.0] * 6}, "both diverged"


def test_a_run_that_diverged_is_left_out_of_what_is_measured_after_training(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    found = fabricated(tmp_path, same, same, same, same, diverged=(NO_RESIDUAL,))
    row = ablation_table(found)[1]
    assert row["variant"] == label(TRANSFORMER, NO_RESIDUAL)
    assert row["diverged"] == "6/6"
    measured = ("centred cosine", "rank residual", "token cosine", "Lyapunov", "log10 |g_0/g_L|")
    assert {row[name] for name in (*measured, "log10 max gradient")} == {"–"}
    assert row["accuracy"] == "0.525 ± 0.02"
    claims = dict(zip(("drift", "rank"), ablation_claims(found, [TRANSFORMER]), strict=False))
    assert {name: each.n for name, each in claims.items()} == {"drift": 0, "rank": 0}
    assert any("left out" in note for note in stabilization.notes("mini", found))


def test_a_variant_without_any_accuracy_is_not_the_next_best(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    accuracy = {BOTH: 60.0, NO_RESIDUAL: NONE, NO_NORM: 50.0, "neither": 20.0}
    found = fabricated(tmp_path, same, same, same, accuracy)
    claim = ablation_claims(found, [TRANSFORMER])[-1]
    wanted = "test accuracy with both − the next best, no norm, by task: ListOps +10.0"
    assert claim.finding.startswith(wanted)


def test_a_claim_is_reached_only_through_those_before_it(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    found = fabricated(tmp_path, same, same, same | {NO_NORM: 50.0}, same)
    drift, rank, explosion = ablation_claims(found, [TRANSFORMER])[:3]
    assert drift.p > 0.05
    assert rank.p is None
    assert explosion.p is None, "what stands behind a closed gate was not tested"
    assert explosion.verdict is Outcome.INCONCLUSIVE
    assert "not reached: without residuals the representation drifts" in explosion.finding


def test_the_ablation_is_read_from_the_records_alone(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    found = fabricated(tmp_path, same | {BOTH: 0.9, NO_RESIDUAL: 0.0}, same, same, same)
    runs = {}
    for (task, variant, seed), each in found.runs.items():
        runs.setdefault((task, variant), {})[seed] = each.record
    evidence = Evidence(
        name="stabilization", question="?", baseline=label(TRANSFORMER, BOTH),
        tasks=("listops-mini",), variants=tuple(dict.fromkeys(v for _, v in runs)), words={},
        runs=runs, missing=(),
    )  # fmt: skip
    stored = Findings(
        name="stabilization", question="?", scale="mini",
        claims=(replace(ablation_claims(found)[0], n=99), undecided("kept", "as stored", 7)),
    )  # fmt: skip
    assert stabilization.rejudge(stored, evidence) is stored, "nothing measured beside the records"
    assert stabilization.rejudge(stored, None) is stored
    for each in found.runs.values():
        (each.record.folder / "dynamics.json").write_text(json.dumps(each.seen))
    anew = stabilization.rejudge(stored, evidence)
    assert anew.claims[:10] == tuple(ablation_claims(found))
    assert (anew.claims[-1].claim, anew.claims[-1].n) == ("kept", 7)
    assert stabilization.CLIPPED in anew.notes
