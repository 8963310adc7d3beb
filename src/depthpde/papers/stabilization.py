"""What do residuals and norms do to a Transformer, and to the PDE that it is said to be?

Paper B's main experiment: a standard Transformer of six blocks and its simulator, with residual and
norm switched off two by two; drift, rank, gradients by layer and information before and after
training, gradient norms and divergence through it, accuracy; and how far simulator and Transformer
agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from depthpde.papers.ablation.findings import DIVERGENCE, ablation_claims, ablation_table, center
from depthpde.papers.ablation.variants import (
    BOTH,
    LOOKS,
    NEITHER,
    SEEDS,
    SIMULATOR,
    STABILIZERS,
    TRANSFORMER,
    Ablation,
    Measured,
    label,
    measure_all,
    shape,
    variants,
    weights_of,
)
from depthpde.papers.experiment import Case, Conclusion, Experiment, JudgedBy
from depthpde.papers.judgement import corrected, judge, spread
from depthpde.records.findings import JudgedClaim
from depthpde.sweeps.scale import Scale
from depthpde.threads import one_thread

if TYPE_CHECKING:
    from depthpde.sweeps.executor import Folders

TASKS = {
    Scale.QUICK: ("listops",),
    Scale.MINI: ("listops", "mnist", "newsgroups"),
    Scale.FULL: ("listops", "mnist", "newsgroups"),
}
STRANGERS = "two untrained strangers (with each other)"
CONTINUOUS = "its own equation, four Strang steps a block"


def conclude(case: Case) -> Conclusion:
    """Measure every run, compare the systems layer by layer, and judge."""
    found = measure_all(case)
    case.log("comparing the two systems layer by layer")
    with one_thread():
        agreed = compare_systems(found, weights_of(case)[1], LOOKS[Scale(case.scale)]["examples"])
    return Conclusion(
        claims=claims(found, agreed),
        tables={
            "by stabilizer (mean ± half the 95 % interval, last layer)": ablation_table(found),
            "agreement of two systems (mean over layers and runs)": agreement_table(agreed),
            "information plane, Transformer (nats, two principal components)": plane_table(found),
        },
        notes=notes(case.scale, found),
    )


def claims(found: Ablation, agreed: list[dict[str, Any]]) -> tuple[JudgedClaim, ...]:
    """Judge all that the experiment tests, corrected together."""
    return corrected(
        [*ablation_claims(found), *fidelity_claims(agreed), *information_claims(found)]
    )


def compare_systems(found: Ablation, folders: Folders, examples: int) -> list[dict[str, Any]]:
    """Compare every simulator with the standard Transformer of its task and seed.

    Also the standard Transformer with its own continuous equation, and with a stranger.
    """
    from depthpde.papers.measurements.fidelity import agreement, continuous_agreement
    from depthpde.papers.measurements.observation import (
        first_batch,
        split_of,
        stranger,
        trained_model,
    )
    from depthpde.runs.run import RunConfig

    rows = []
    for (task, seed), standard in found.of(label(TRANSFORMER, BOTH)).items():
        if standard.diverged:
            continue
        run = RunConfig.from_dict(standard.record.config)
        model, batch = trained_model(standard.record), first_batch(split_of(run, folders), examples)
        at = {"task": task, "seed": seed}
        for name in STABILIZERS:
            other = found.runs[task, label(SIMULATOR, name), seed]
            if not other.diverged:
                twin = trained_model(other.record)
                rows.append(at | {"with": f"simulator, {name}"} | agreement(model, twin, batch))
        rows.append(at | {"with": "untrained stranger"} | agreement(model, stranger(run), batch))
        both = [stranger(run), run.build().eval()]
        rows.append(at | {"with": STRANGERS} | agreement(both[0], both[1], batch))  # type: ignore[arg-type]
        smooth = continuous_agreement(model, batch)
        if smooth is not None:
            rows.append(at | {"with": CONTINUOUS} | smooth)
    return rows


def fidelity_claims(rows: list[dict[str, Any]]) -> list[JudgedClaim]:
    """Judge how far simulator and Transformer agree."""

    def values(name: str, measure: str) -> dict[tuple[str, int], float]:
        return {
            (row["task"], row["seed"]): center(row[measure][1:] or row[measure])
            for row in rows
            if row["with"] == name and measure in row
        }

    best = values(f"simulator, {BOTH}", "CKA")
    margins = [
        best[key] - max(values(f"simulator, {name}", "CKA").get(key, 0.0) for name in others)
        for others in [[each for each in STABILIZERS if each != BOTH]]
        for key in best
    ]
    own, random = (
        values(CONTINUOUS, "centred cosine"),
        values("untrained stranger", "centred cosine"),
    )
    cosines = values(f"simulator, {BOTH}", "attention cosine")
    chance = values(STRANGERS, "attention cosine")
    return [
        judge(
            "Paper B: the simulator agrees with the standard Transformer best with both "
            "stabilizers",
            "CKA over layers is {mean:+.2f} above the best of the other three",
            margins,
        ),
        judge(
            "Paper B: a Transformer follows its PDE (layerwise cosine near 1)",
            "centred cosine between the blocks and the finely integrated equation of the same "
            f"weights is {center(list(own.values())):.2f} over layers, {{mean:.2f}} above an "
            "untrained stranger; near 1 counts from 0.9 above",
            [own[key] - random[key] for key in own if key in random],
            above=0.9 - max(0.0, center(list(random.values()))),
        ),
        judge(
            "Paper B, earlier version: attention distributions of both systems agree to a cosine "
            "above 0.98",
            f"simulator and Transformer reach {center(list(cosines.values())):.3f}; two untrained "
            f"strangers {center(list(chance.values())):.3f}: only the difference, {{mean:+.3f}}, "
            "shows anything",
            [cosines[key] - chance[key] for key in cosines if key in chance],
            above=0.98 - center(list(chance.values())),
        ),
    ]


def information_claims(found: Ablation) -> list[JudgedClaim]:
    """Judge what the stabilizers do to the information about the label."""
    variants = {name: label(TRANSFORMER, name) for name in STABILIZERS}

    def told(measured: Measured) -> float | None:
        layers = measured.at("end").get("information")
        return None if not layers or layers[-1]["label_unreliable"] else layers[-1]["about_label"]

    kept = found.pairs(variants[BOTH], variants[NEITHER], told)
    doubtful = sum(
        bool(layer["label_unreliable"])
        for measured in found.runs.values()
        for layer in (measured.at("end").get("information") or ())
    )
    return [
        judge(
            "Paper B: stabilizers keep information about the label through depth",
            "the last layer tells {mean:+.2f} nats more of the label with both than with neither "
            f"(k-nearest neighbours; {doubtful} estimates of all layers and runs failed a "
            "self-check and are left out)",
            kept,
        )
    ]


def agreement_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lay out who agrees with the standard Transformer, and how much."""
    measures = ("cosine", "centred cosine", "CKA", "attention cosine", "attention JS")
    names = dict.fromkeys(row["with"] for row in rows)
    return [
        {"compared with": name}
        | {
            measure: spread(
                [center(row[measure]) for row in rows if row["with"] == name and measure in row]
            )
            for measure in measures
        }
        for name in names
    ]


def plane_table(found: Ablation) -> list[dict[str, Any]]:
    """Lay out the information plane: first and last layer, before and after training."""
    rows = []
    for name in STABILIZERS:
        runs = found.of(label(TRANSFORMER, name)).values()
        for when in ("start", "end"):
            layers = [m.at(when).get("information") for m in runs]
            known = [each for each in layers if each]
            if not known:
                continue
            for depth in (0, len(known[0]) // 2, -1):
                at = [each[depth] for each in known]
                rows.append(
                    {
                        "stabilizer": name,
                        "when": "untrained" if when == "start" else "trained",
                        "layer": depth % len(known[0]),
                        "I(X;T)": spread([each["about_input"] for each in at]),
                        "I(T;Y)": spread([each["about_label"] for each in at]),
                        "unreliable (X;T)": _failed(at, "input_unreliable"),
                        "unreliable (T;Y)": _failed(at, "label_unreliable"),
                    }
                )
    return rows


def notes(scale: str, found: Ablation) -> tuple[str, ...]:
    """Say what a reader must know before believing the rest."""
    sizes = {int(m.record.result["parameters"]) for m in found.runs.values() if m.record.result}
    said = [
        "the Transformer is pre-norm; 'no norm' keeps the same first weights and leaves out the "
        f"norms' own gains ({min(sizes):,} to {max(sizes):,} parameters)",
        "the simulator is the same network with learned diffusion as a term, Lie splitting, dt = 1",
        DIVERGENCE,
    ]
    if scale == Scale.QUICK:
        said.append("quick: a few updates of small models; shows that it works, not what is true")
    return tuple(said)


def _failed(layers: Sequence[dict[str, Any]], check: str) -> str:
    return f"{sum(bool(each[check]) for each in layers)}/{len(layers)}"


EXPERIMENT = Experiment(
    name="stabilization",
    question="What do residuals and norms do to a Transformer and to the PDE it is said to be?",
    judged_by=JudgedBy.WEIGHTS,
    variants=variants(),
    tasks=TASKS.__getitem__,
    bases=shape,
    seeds=SEEDS,
    fixed_tasks=True,
    conclude=conclude,
)
