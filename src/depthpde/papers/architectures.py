"""Does what holds for an encoder hold for a vision Transformer and for a decoder?

The ablation of `stabilization` and the depth limit, for a vision Transformer (patches of 2×2
pixels, a class site in front) and for a causal decoder that tells the next byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from depthpde.papers.ablation.findings import DIVERGENCE, ablation_claims, ablation_table
from depthpde.papers.ablation.variants import (
    Ablation,
    measure_all,
    read_ablation,
    shape,
    variants,
    weights_of,
)
from depthpde.papers.depth_limit import DEPTHS, EXAMPLES, STANDARD, convergence_claims
from depthpde.papers.experiment import Case, Conclusion, Experiment, JudgedBy
from depthpde.papers.stabilization import CLIPPED, replace_claims
from depthpde.records.evidence import Evidence
from depthpde.records.findings import Findings, JudgedClaim, spell_effect
from depthpde.sweeps.scale import Scale
from depthpde.threads import one_thread

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset
    from depthpde.sweeps.executor import Folders

VISION, DECODER = "vision Transformer", "decoder"
ARCHITECTURES: dict[str, dict[str, Any]] = {
    VISION: {"input": "patch", "patch": 2, "pooling": "cls"},
    DECODER: {},
}
"""What differs from the standard encoder."""
VERDICTS = "verdicts, by architecture and system"
"""The title of the table that sets them side by side."""
TASKS = {VISION: "mnist", DECODER: "wikitext2"}
SEEDS = {Scale.QUICK: 1, Scale.MINI: 10, Scale.FULL: 10}
"""Each architecture has one task, so pairs come from seeds alone; ten are the fewest that can bear
out a claim when twenty were corrected for together, as they were when this was planned."""


def bases(scale: Scale, tasks: Sequence[str]) -> dict[str, Preset]:
    """Return what the variants of each architecture start from."""
    found = {}
    for task in tasks:
        name = architecture_of(task)
        for full, preset in shape(scale, [task], **ARCHITECTURES[name]).items():
            training = preset.training
            if name == DECODER:  # a million bytes to look at: once, at the end
                training = replace(training, evaluate_every=training.updates)
            found[full] = replace(preset, training=training)
    return found


def conclude(case: Case) -> Conclusion:
    """Judge the ablation and the depth limit of each architecture, in this order."""
    plan, folders = weights_of(case)
    found = measure_all(case)
    claims: list[JudgedClaim] = []
    tables: dict[str, list[dict[str, Any]]] = {}
    for task in plan.bases:
        name = architecture_of(task)
        part = _part(found, task)
        case.log(f"depth limit of the {name}")
        limits = _limits(part, folders, EXAMPLES[Scale(case.scale)])
        claims += [
            replace(each, claim=f"{name}, {each.claim}")
            for each in [*ablation_claims(part), *limits]
        ]
        tables[f"{name} on {task}, by stabilizer"] = ablation_table(part)
    return Conclusion(
        claims=claims,
        tables=tables,
        notes=(
            "the simulator's diffusion runs along the rows of patches laid end to end, behind the "
            "class site, and upwind in the decoder",
            "accuracy of the decoder is the share of bytes told right",
            DIVERGENCE,
            CLIPPED,
        ),
    )


def rejudge(stored: Findings, evidence: Evidence | None) -> Findings:
    """Judge anew what the records hold, the ablation; the limits of depth are as stored."""
    found = read_ablation(evidence)
    if found is None or evidence is None:
        return stored
    anew = [
        replace(each, claim=f"{architecture_of(task)}, {each.claim}")
        for task in evidence.tasks
        for each in ablation_claims(_part(found, task))
    ]
    notes = tuple(dict.fromkeys((*stored.notes, CLIPPED)))
    claims = replace_claims(stored.claims, anew)
    tables = {VERDICTS: verdict_grid(claims)} | dict(stored.tables)
    return replace(stored, claims=claims, tables=tables, notes=notes)


def verdict_grid(claims: Sequence[JudgedClaim]) -> list[dict[str, Any]]:
    """Set the verdicts of each claim side by side: one row a claim, one column a system.

    Args:
        claims: Their texts read ``ARCHITECTURE, WHO, SYSTEM: CLAIM``, or without a system.
    """
    rows: dict[str, dict[str, Any]] = {}
    for each in claims:
        name, _, rest = each.claim.partition(", ")
        who, _, text = rest.partition(": ")
        who, _, system = who.partition(", ")
        row = rows.setdefault(f"{who}: {text}", {})
        # the limits of depth are asked of the standard Transformer alone
        column = f"{name.removesuffix(' Transformer')}, {system or 'Transformer'}"
        row[column] = f"{each.verdict.value}, {spell_effect(each)}"
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    return [{"claim": claim} | {c: row.get(c, "–") for c in columns} for claim, row in rows.items()]


def _part(found: Ablation, task: str) -> Ablation:
    runs = {key: run for key, run in found.runs.items() if key[0] == task}
    return Ablation(found.plan, runs)


def architecture_of(task: str) -> str:
    """Return which architecture reads a task."""
    return next(name for name, each in TASKS.items() if each == task.removesuffix("-mini"))


def _limits(found: Ablation, folders: Folders, examples: int) -> list[JudgedClaim]:
    from depthpde.papers.measurements.depth import measure

    rows = []
    for (task, _), each in found.of(STANDARD).items():
        if not each.diverged:
            with one_thread():
                measured = measure(each.record, folders, examples, DEPTHS)
            rows += [{"task": task, "variant": STANDARD} | row for row in measured]
    return convergence_claims(rows)


EXPERIMENT = Experiment(
    name="architectures",
    question="Does what holds for an encoder hold for a vision Transformer and for a decoder?",
    judged_by=JudgedBy.WEIGHTS,
    variants=variants(),
    tasks=lambda scale: tuple(TASKS.values()),
    bases=bases,
    seeds=SEEDS,
    fixed_tasks=True,
    conclude=conclude,
    rejudge=rejudge,
)
