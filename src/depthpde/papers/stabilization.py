"""What do residuals and norms do to a Transformer, and to the PDE that it is said to be?

Paper B's main experiment: a standard Transformer of six blocks and its simulator, with residual and
norm switched off two by two; drift, rank, gradients by layer and information before and after
training, gradient norms and divergence through it, accuracy; and how far simulator and Transformer
agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from depthpde.papers.ablation.by_depth import ATTENTION, depth_table, likeness
from depthpde.papers.ablation.findings import DIVERGENCE, ablation_claims, ablation_table, center
from depthpde.papers.ablation.information import (
    PLANE,
    SLICED,
    information_claims,
    plane_table,
    sliced_table,
    where_believed,
)
from depthpde.papers.ablation.variants import (
    BOTH,
    LOOKS,
    NO_NORM,
    SEEDS,
    SIMULATOR,
    STABILIZERS,
    TRANSFORMER,
    Ablation,
    label,
    measure_all,
    read_ablation,
    shape,
    variants,
    weights_of,
)
from depthpde.papers.claims import Judged, in_order, number_claim, spread
from depthpde.papers.experiment import Case, Conclusion, Experiment, JudgedBy
from depthpde.records.evidence import Evidence
from depthpde.records.findings import Findings, JudgedClaim
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
CLIPPED = (
    "all runs were trained with the gradient's norm clipped at 1.0: what norms do without it "
    "is not told"
)
STORED = (
    "claims about layers (CKA, cosines) were measured with weights that are not kept: their "
    "intervals pool the tasks"
)
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
            PLANE: plane_table(found),
            SLICED: sliced_table(found),
        },
        notes=notes(case.scale, found),
    )


def claims(found: Ablation, agreed: list[dict[str, Any]]) -> tuple[JudgedClaim, ...]:
    """Judge all that the experiment tests: the ablation in its order, agreement, information."""
    return (
        *ablation_claims(found),
        *in_order(fidelity_claims(agreed)),
        *in_order(information_claims(found)),
    )


def rejudge(stored: Findings, evidence: Evidence | None) -> Findings:
    """Judge anew what the records hold: the ablation, the information, and answers like with like.

    The agreement of layers needs the weights: as stored.
    """
    found = read_ablation(evidence)
    if found is None or evidence is None:
        return stored
    anew = (*ablation_claims(found), *in_order(information_claims(found)))
    claims = replace_claims(stored.claims, anew)
    return replace(
        stored,
        claims=(*claims, *in_order(likeness_claims(evidence))),
        tables=dict(stored.tables)
        | {SLICED: sliced_table(found), ATTENTION: depth_table(evidence, ATTENTION)},
        notes=tuple(dict.fromkeys((*stored.notes, CLIPPED, where_believed(found), STORED))),
    )


def replace_claims(
    stored: Sequence[JudgedClaim], anew: Sequence[JudgedClaim]
) -> tuple[JudgedClaim, ...]:
    """Return claims judged anew, then those stored that none of them replaces."""
    names = {each.claim for each in anew}
    return (*anew, *(each for each in stored if each.claim not in names))


def likeness_claims(evidence: Evidence) -> list[Judged | JudgedClaim]:
    """Judge whether two intact systems answer more alike than two that lack the same thing."""
    alike = likeness(evidence)
    if BOTH not in alike or NO_NORM not in alike or not any(alike[BOTH].values()):
        return []
    gaps = {
        task: [alike[BOTH][task][s] - alike[NO_NORM][task][s] for s in alike[BOTH][task]
               if s in alike[NO_NORM][task]]
        for task in alike[BOTH]
    }  # fmt: skip
    means = {
        name: center([k for runs in found.values() for k in runs.values()])
        for name, found in alike.items()
    }
    words = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
    return [
        number_claim(
            "Paper B, like with like: Transformer and simulator answer most alike with both "
            "stabilizers",
            f"Cohen's κ of their answers, both lacking the same: {words}; both − no norm",
            gaps,
            margin=0.05,
        )
    ]


def compare_systems(found: Ablation, folders: Folders, examples: int) -> list[dict[str, Any]]:
    """Compare every simulator with the standard Transformer of its task and seed.

    Also the standard Transformer with its own continuous equation, and with a stranger.
    """
    from depthpde.papers.measurements.fidelity import agreement, continuous_agreement
    from depthpde.papers.measurements.observation import (
        first_batch,
        other_seed,
        split_of,
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
        rows.append(at | {"with": "untrained stranger"} | agreement(model, other_seed(run), batch))
        both = [other_seed(run), run.build().eval()]
        rows.append(at | {"with": STRANGERS} | agreement(both[0], both[1], batch))  # type: ignore[arg-type]
        smooth = continuous_agreement(model, batch)
        if smooth is not None:
            rows.append(at | {"with": CONTINUOUS} | smooth)
    return rows


def fidelity_claims(rows: list[dict[str, Any]]) -> list[Judged | JudgedClaim]:
    """Judge how far simulator and Transformer agree."""

    def values(name: str, measure: str) -> dict[tuple[str, int], float]:
        return {
            (row["task"], row["seed"]): center(row[measure][1:] or row[measure])
            for row in rows
            if row["with"] == name and measure in row
        }

    best = values(f"simulator, {BOTH}", "CKA")
    others = [values(f"simulator, {each}", "CKA") for each in STABILIZERS if each != BOTH]
    margins = {key: best[key] - max(each.get(key, 0.0) for each in others) for key in best}
    own, random = (
        values(CONTINUOUS, "centred cosine"),
        values("untrained stranger", "centred cosine"),
    )
    cosines = values(f"simulator, {BOTH}", "attention cosine")
    chance = values(STRANGERS, "attention cosine")
    return [
        number_claim(
            "Paper B: the simulator agrees with the standard Transformer best with both "
            "stabilizers",
            "CKA over layers is {mean:+.2f} above the best of the other three",
            strata(margins),
        ),
        number_claim(
            "Paper B: a Transformer follows its PDE (layerwise cosine near 1)",
            "centred cosine between the blocks and the finely integrated equation of the same "
            f"weights is {center(list(own.values())):.2f} over layers, {{mean:.2f}} above an "
            "untrained stranger; near 1 counts from 0.9 above",
            strata({key: own[key] - random[key] for key in own if key in random}),
            mark=0.9 - max(0.0, center(list(random.values()))),
        ),
        number_claim(
            "Paper B, earlier version: attention distributions of both systems agree to a cosine "
            "above 0.98",
            f"simulator and Transformer reach {center(list(cosines.values())):.3f}; two untrained "
            f"strangers {center(list(chance.values())):.3f}: only the difference, {{mean:+.3f}}, "
            "shows anything",
            strata({key: cosines[key] - chance[key] for key in cosines if key in chance}),
            mark=0.98 - center(list(chance.values())) if chance else 0.0,
        ),
    ]


def strata(values: Mapping[tuple[str, int], float]) -> dict[str, list[float]]:
    """Return numbers by task and seed as task → numbers."""
    found: dict[str, list[float]] = {}
    for (task, _), value in values.items():
        found.setdefault(task, []).append(value)
    return found


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


def notes(scale: str, found: Ablation) -> tuple[str, ...]:
    """Describe what a reader must know before believing the rest."""
    sizes = {int(m.record.result["parameters"]) for m in found.runs.values() if m.record.result}
    lines = [
        "the Transformer is pre-norm; 'no norm' keeps the same first weights and leaves out the "
        f"norms' own gains ({min(sizes):,} to {max(sizes):,} parameters)",
        "the simulator is the same network with learned diffusion as a term, Lie splitting, dt = 1",
        DIVERGENCE,
        CLIPPED,
        where_believed(found),
    ]
    if scale == Scale.QUICK:
        lines.append("quick: a few updates of small models; shows that it works, not what is true")
    return tuple(lines)


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
    rejudge=rejudge,
)
