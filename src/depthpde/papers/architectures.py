"""Does what holds for an encoder hold for a vision Transformer and for a decoder?

The ablation of `stabilization` and the depth limit, for a vision Transformer (patches of 2×2
pixels, a class site in front) and for a causal decoder that tells the next byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from depthpde.papers.ablation import (
    BOTH,
    LOOKS,
    TRANSFORMER,
    Ablation,
    ablation_plan,
    label,
    measure_all,
    shape,
)
from depthpde.papers.ablation_findings import DIVERGENCE, ablation_claims, ablation_table
from depthpde.papers.depth_limit import EXAMPLES, convergence_claims, measure
from depthpde.papers.experiment import Experiment, Log
from depthpde.papers.judgement import corrected
from depthpde.papers.observation import one_thread
from depthpde.records.findings import Findings, JudgedClaim
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.scale import Scale

NAME = "architectures"
QUESTION = "Does what holds for an encoder hold for a vision Transformer and for a decoder?"
VISION, DECODER = "vision Transformer", "decoder"
ARCHITECTURES: dict[str, dict[str, Any]] = {
    VISION: {"input": "patch", "patch": 2, "pooling": "cls"},
    DECODER: {},
}
"""What differs from the standard encoder."""
TASKS = {VISION: "mnist", DECODER: "wikitext2"}
SEEDS = {Scale.QUICK: 3, Scale.MINI: 10, Scale.FULL: 10}
"""Each architecture has one task, so pairs come from seeds alone; ten are the fewest that can bear
out a claim when twenty are corrected for together."""


def plan(scale: Scale = Scale.MINI, *, seeds: int | Sequence[int] | None = None) -> Plan:
    """Return the runs that answer the question; see `TASKS` for what each architecture reads."""
    starts = {
        task: preset
        for name, model in ARCHITECTURES.items()
        for task, preset in shape(scale, [TASKS[name]], **model).items()
    }
    for task, preset in starts.items():
        if architecture_of(task) == DECODER:  # a million bytes to look at: once, at the end
            training = replace(preset.training, evaluate_every=preset.training.updates)
            starts[task] = replace(preset, training=training)
    return ablation_plan(NAME, QUESTION, starts, seeds=seeds or SEEDS[scale])


def answer(
    made: Plan, folders: Folders, scale: Scale, *, workers: int, log: Log, device: str = "cpu"
) -> Findings:
    """Answer the question by the runs of a plan."""
    found = measure_all(made, folders, LOOKS[scale], workers=workers, log=log, device=device)
    claims: list[JudgedClaim] = []
    tables: dict[str, list[dict[str, Any]]] = {}
    for task in made.bases:
        name = architecture_of(task)
        part = Ablation(made, {key: run for key, run in found.runs.items() if key[0] == task})
        log(f"depth limit of the {name}")
        claims += [
            replace(each, claim=f"{name}, {each.claim}")
            for each in [*ablation_claims(part), *_limits(part, folders, EXAMPLES[scale])]
        ]
        tables[f"{name} on {task}, by stabilizer"] = ablation_table(part)
    findings = Findings(
        name=NAME,
        question=QUESTION,
        scale=scale.value,
        claims=corrected(claims),
        tables=tables,
        notes=(
            "the simulator's diffusion runs along the rows of patches laid end to end, behind the "
            "class site, and upwind in the decoder",
            "accuracy of the decoder is the share of bytes told right",
            DIVERGENCE,
        ),
    )
    findings.write(folders.results)
    return findings


reproduce = Experiment(plan, answer)
"""What `depthpde reproduce` calls."""


def architecture_of(task: str) -> str:
    """Return which architecture reads a task."""
    return next(name for name, each in TASKS.items() if each == task.removesuffix("-mini"))


def _limits(found: Ablation, folders: Folders, examples: int) -> list[JudgedClaim]:
    standard = label(TRANSFORMER, BOTH)
    rows = []
    for (_, seed), each in found.of(standard).items():
        if not each.diverged:
            with one_thread():
                rows += measure(each.record, folders, examples, standard, seed)
    return convergence_claims(rows)
