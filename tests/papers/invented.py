"""Evidence with effects that are known, and its claims as an experiment judges them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from depthpde.papers.experiment import Case
from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.evidence import Evidence
from depthpde.records.record import Record

TASKS = ("text-mini", "image-mini")
POSITIONS = (
    "after embedding", "before norm", "in attention", "in heads", "after attention", "after ffn",
    "between blocks",
)  # fmt: skip


def record(task, variant, seed, accuracy, ratios=None):
    placed = [variant.replace(" ", "_")] if variant in POSITIONS else []
    config = {"task": task, "seed": seed, "model": {"positions": placed, "layer": "diffusion"}}
    result = {"status": "done", "test": {"accuracy": accuracy}, "ratios": ratios or {}}
    return Record(Path(), f"{task}{variant}{seed}", variant, config, {}, {}, result)


def evidence(effects, *, name="placement", seeds=8, spread=0.3, missing=(), tasks=TASKS):
    """Invent runs whose differences from the baseline are known."""
    random = np.random.default_rng(0)
    runs = {}
    for task in tasks:
        level = {seed: 50 + random.normal() for seed in range(seeds)}
        for variant, points in {"baseline": 0.0, **effects}.items():
            noise = 0.0 if variant == "baseline" else spread
            runs[task, variant] = {
                seed: record(task, variant, seed, level[seed] + points + noise * random.normal())
                for seed in range(seeds)
            }
    return Evidence(
        name=name,
        question="Where?",
        baseline="baseline",
        tasks=tasks,
        variants=("baseline", *effects),
        words={},
        runs=runs,
        missing=tuple(missing),
    )


def judge(found, scale="mini"):
    """Judge evidence by the experiment of its name."""
    return EXPERIMENTS[found.name].judge(Case(scale=scale, evidence=found))


def verdicts(effects, **options):
    return [each.verdict for each in judge(evidence(effects, **options)).claims]
