"""Results folders as a sweep leaves them, with invented numbers: true layout, no training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from depthpde.models.config import ModelConfig
from depthpde.records.findings import Findings, JudgedClaim
from depthpde.records.record import (
    CONFIG,
    ENVIRONMENT,
    FORMAT,
    METRICS,
    RESULT,
    STATUS,
    Cell,
    Grid,
    run_folder,
    write_grid,
)  # fmt: skip
from depthpde.records.verdicts import Outcome
from depthpde.runs.run import RunConfig
from depthpde.seeds import derive
from depthpde.training.config import TrainingConfig

TASKS = ("listops-mini", "text-mini", "retrieval-mini", "image-mini", "pathfinder-mini")
LEVEL = dict(zip(TASKS, (34.0, 61.0, 57.0, 30.0, 58.0), strict=True))
TRIVIAL = {
    "listops-mini": {"majority": 15.5, "root operator": 33.3},
    "image-mini": {"majority": 10.6},
}
EFFECT = {
    "baseline": 0.0, "after_embedding": 1.8, "before_norm": 0.9, "in_attention": 0.4,
    "in_heads": 0.2, "after_attention": -1.9, "after_ffn": 0.1, "between_blocks": -0.6,
    "all seven": 1.1, "depthwise conv": 1.2, "blur": -0.3, "rotary": 1.5,
}  # fmt: skip
"""Points over the baseline, on every task; what a report must find again."""
NOISE = 0.5
"""Standard deviation of a paired difference, in points."""


def model_of(variant: str) -> ModelConfig:
    """Return the model that a variant stands for."""
    every = [each for each in EFFECT if "_" in each]
    printed = {
        "baseline": {},
        "all seven": {"positions": every, "layer": {"kind": "diffusion", "initial_ratio": 0.01}},
        "depthwise conv": {"positions": ["after_embedding"], "layer": "depthwise_conv"},
        "blur": {"positions": ["after_embedding"], "layer": "blur"},
        "rotary": {"encoding": "rotary"},
    }.get(variant, {"positions": [variant]})
    return ModelConfig(dim=16, blocks=2, heads=2, **printed)


def put(path: Path, values: object) -> None:
    """Write JSON without waiting for the disk."""
    path.write_text(json.dumps(values))


def random_of(*names: str | int) -> np.random.Generator:
    return np.random.default_rng(derive(0, *names))


def accuracy_of(task: str, variant: str, seed: int) -> float:
    """Return an invented test accuracy with two parts in a thousand of an example's grain."""
    shared = random_of(task, seed).normal(0, 1.0)
    own = 0.0 if variant == "baseline" else random_of(task, variant, seed).normal(0, NOISE)
    return round(LEVEL[task] + shared + EFFECT.get(variant, 0.0) + own, 2)


def write_run(results: Path, task: str, variant: str, seed: int, *, updates: int = 800) -> str:
    """Write the record of one finished run, and return its id."""
    training = TrainingConfig(updates=updates, learning_rate=2e-3, warmup=80, evaluate_every=100)
    run = RunConfig(task=task, model=model_of(variant), training=training, seed=seed)
    folder = run_folder(results, run.id)
    folder.mkdir(parents=True)
    values = {"format": FORMAT, "id": run.id, "label": run.label, "config": run.to_dict()}
    put(folder / CONFIG, values)
    put(folder / ENVIRONMENT, environment())
    put(folder / STATUS, {"state": "done", "update": updates, "updates": updates})
    accuracy = accuracy_of(task, variant, seed)
    (folder / METRICS).write_text(_metrics(task, variant, seed, accuracy, updates))
    put(folder / RESULT, _result(run, accuracy, variant))
    return run.id


def environment() -> dict[str, object]:
    return {
        "versions": {"depthpde": "0.1", "python": "3.11.2", "torch": "2.13.0"},
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "machine": {"cpu": "A CPU", "cores": 2, "memory_bytes": 2**34, "platform": "Linux x86_64"},
        "threads": 1,
        "device": "cpu",
    }


def write_placement(
    results: Path,
    *,
    tasks: Sequence[str] = TASKS,
    variants: Sequence[str] = tuple(EFFECT),
    seeds: int = 6,
    name: str = "placement",
) -> Grid:
    """Write all runs of a grid and the grid itself."""
    cells = tuple(
        Cell(task, variant, seed, write_run(results, task, variant, seed))
        for task in tasks
        for variant in variants
        for seed in range(seeds)
    )
    words = {variant: {"words": f"{variant.replace('_', ' ')}, invented"} for variant in variants}
    question = "Where does diffusion help, by how much, and is it more than any local mixing?"
    grid = Grid(name, question, "baseline", cells, words)
    write_grid(results, grid)
    return grid


def write_probe(results: Path, run: str, blocks: int = 6, tilt: float = 1.0) -> None:
    """Add the measures of a finished model."""
    depth = np.linspace(0, 1, blocks + 1)
    omega = np.linspace(0, math.pi, 33)
    probe = {
        "transfer": {"after embedding": {"omega": list(omega), "gain": list(np.cos(omega / 4))}},
        "bands": {"after embedding": {"before": [4, 3, 2, 1], "after": [4, 2.5, 1, 0.2]}},
        "depth": {
            "drift.cosine": list(1 - 0.7 * tilt * depth),
            "rank.residual": list(0.9 - 0.3 * tilt * depth),
            "attention.entropy": list(0.8 - 0.2 * depth**2),
            "lyapunov.largest": list(0.1 * tilt * np.sin(3 * depth)),
            "energy.dirichlet": list(1 + 2 * tilt * depth),
            "gradient.stream": list(np.exp(-tilt * depth)),
        },
    }
    (run_folder(results, run) / "probe.json").write_text(json.dumps(probe))


def write_findings(results: Path, name: str = "coupling") -> None:
    """Write two claims and what became of them."""
    printed = (
        ("After embedding helps most", "+1.8 points over five tasks", "supported", (1.6, 2.0)),
        (
            "After attention is worst on every task but Image",
            "on Image too",
            "smaller than claimed",
            (-2.1, -1.7),
        ),
        ("Diffusion is more than local mixing", "not shown", "inconclusive", None),
    )
    claims = tuple(
        JudgedClaim(
            claim=claim, finding=finding, verdict=Outcome(verdict), n=30,
            interval=interval, p=0.0002 if interval else None, effect=1.8 if interval else None,
        )
        for claim, finding, verdict, interval in printed
    )  # fmt: skip
    rows = [{"position": "after_embedding", "commutator": 0.12, "points": 1.8}]
    question = "Where does diffusion help?"
    Findings(
        name=name, question=question, scale="mini", claims=claims, notes=("Invented.",),
        tables={"Commutator and effect": rows},
    ).write(results)  # fmt: skip


def _metrics(task: str, variant: str, seed: int, accuracy: float, updates: int) -> str:
    random = random_of(task, variant, seed, "curve")
    lines = []
    floor = TRIVIAL.get(task, {"majority": 50.0})["majority"]
    for update in range(100, updates + 1, 100):
        reached = floor + (accuracy - floor) * (1 - math.exp(-3 * update / updates)) / 0.95
        reached += random.normal(0, 0.6)
        loss = 2.3 - reached / 50
        lines.append({"kind": "point", "update": update, "epoch": 0, "loss": loss,
                      "accuracy": reached, "rate": 1e-3, "gradient_norm": 1.0})  # fmt: skip
        lines.append({"kind": "validation", "update": update, "accuracy": reached, "loss": loss,
                      "ratios": {}})  # fmt: skip
    return "".join(json.dumps(line) + "\n" for line in lines)


def _result(run: RunConfig, accuracy: float, variant: str) -> dict[str, object]:
    random = random_of(run.task, variant, run.seed, "ratios")
    ratios = {}
    for placed in run.model.placements if variant not in ("depthwise conv", "blur") else ():
        once = placed.position == "after_embedding"
        stem = {"before_norm": "before_norm_attention", "in_attention": "in_attention_value"}
        leaf = stem.get(placed.position, placed.position.value)
        for block in (None,) if once else range(run.model.blocks):
            place = "encoder." if block is None else f"encoder.blocks.{block}."
            values = 0.25 / (1 + np.exp(-random.normal(0.3 if once else -0.8, 0.9, 16)))
            ratios[f"{place}placed.layers.{leaf}.layer.free"] = values.tolist()
    slow = 1 + 0.03 * len(ratios)
    return {
        "format": FORMAT, "id": run.id, "status": "done", "update": run.training.updates,
        "reason": "",
        "test": {"accuracy": accuracy, "loss": 1.5, "targets": 5000,
                 "correct": round(50 * accuracy)},
        "validation": {"accuracy": accuracy, "loss": 1.5, "update": run.training.updates},
        "ratios": ratios, "weights": {},
        "seconds": 60 * slow + 0.1 * run.seed, "tokens": 6_000_000,
        "tokens_per_second": 6e6 / (60 * slow + 0.1 * run.seed),
        "peak_memory_bytes": int(4e8 * (1 + 0.02 * len(ratios))),
        "parameters": 30_000 + 16 * len(ratios),
        "trivial": TRIVIAL.get(run.task, {"majority": 50.0}),
        "data": {"manifest_sha256": "ab" * 32}, "start": "cd" * 32, "notes": [],
    }  # fmt: skip
