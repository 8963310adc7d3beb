"""The stabilizers switched off, two by two, in the Transformer and in its simulator.

    both            u ← u + F(S u)          no residual      u ← F(S u)
    no norm         u ← u + F(u)            neither          u ← F(u)

Same matrices, same first numbers, same order of examples; the norms' own gains go with the norms.
The simulator is the equation with its diffusion, split into turns with dt = 1, so that "no
residual" means the same thing in both: as many steps, each u ← F(u).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from depthpde.layers.stabilizer import Stabilizer
from depthpde.models.config import ModelConfig
from depthpde.papers.experiment import Log
from depthpde.papers.observation import Observation, observe
from depthpde.records.record import Record, State, read_record, run_folder
from depthpde.runs.execute import ensure_prepared
from depthpde.runs.presets import Preset
from depthpde.simulator.config import SimulatorConfig
from depthpde.sweeps.executor import Executor, Folders, InProcess
from depthpde.sweeps.grid import Plan, Variant, bases
from depthpde.sweeps.pool import Pool
from depthpde.sweeps.scale import Scale
from depthpde.sweeps.sweep import sweep
from depthpde.training.config import TrainingConfig

BOTH, NO_RESIDUAL, NO_NORM, NEITHER = "both", "no residual", "no norm", "neither"
STABILIZERS = {
    BOTH: Stabilizer(),
    NO_RESIDUAL: Stabilizer(residual=False),
    NO_NORM: Stabilizer(norm="none"),
    NEITHER: Stabilizer(norm="none", residual=False),
}
"""What is left of the stabilizer, by what is missing."""
TRANSFORMER, SIMULATOR = "Transformer", "simulator"
SYSTEMS = {
    TRANSFORMER: None,
    SIMULATOR: SimulatorConfig(method="lie", steps=1, diffusion=0.1),
}
"""How each system goes through depth."""
SEEDS = {Scale.QUICK: 3, Scale.MINI: 6, Scale.FULL: 6}
LOOKS = {
    Scale.QUICK: Observation(examples=16, informed=512, tangents=2),
    Scale.MINI: Observation(),
    Scale.FULL: Observation(informed=1024),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished run and what was measured of it."""

    record: Record
    seen: Mapping[str, Any]

    @property
    def diverged(self) -> bool:
        """Whether its loss left every bound, or its numbers ceased to be numbers."""
        return self.record.state is State.DIVERGED or self.seen["end"] is None

    @property
    def largest_gradient(self) -> float | None:
        """The largest gradient norm among the logged updates, before clipping.

        None where none was logged; what made a run diverge is never among them.
        """
        found = [float(each["gradient_norm"]) for each in self.record.points()]
        return max(found, default=None)

    def at(self, when: str) -> Mapping[str, Any]:
        """Return what was measured at the start or the end; nothing at the end of a divergence."""
        left_out = when == "end" and self.diverged
        return {} if left_out else self.seen[when] or {}

    def last(self, name: str, when: str = "end") -> float | None:
        """Return a measure at the last layer; None where there is none."""
        layers = self.at(when).get(name)
        return layers[-1] if layers else None


@dataclass(frozen=True, slots=True)
class Ablation:
    """Every finished run of a plan, measured."""

    plan: Plan
    runs: dict[tuple[str, str, int], Measured] = field(default_factory=dict)
    """(task, variant, seed) → run."""

    def of(self, variant: str, task: str | None = None) -> dict[tuple[str, int], Measured]:
        """Return the runs of one variant by task and seed."""
        return {
            (at, seed): each
            for (at, label, seed), each in self.runs.items()
            if label == variant and task in (None, at)
        }

    def pairs(
        self, variant: str, baseline: str, value: Callable[[Measured], float | None]
    ) -> list[float]:
        """Return value(variant) − value(baseline) wherever both can be had."""
        ours, theirs = self.of(variant), self.of(baseline)
        found = [
            (value(ours[key]), value(theirs[key])) for key in sorted(ours.keys() & theirs.keys())
        ]
        return [a - b for a, b in found if a is not None and b is not None]


def label(system: str, stabilizer: str) -> str:
    """Return what a variant is called."""
    return f"{system}, {stabilizer}"


def ablation_plan(
    name: str,
    question: str,
    tasks: Mapping[str, Preset],
    *,
    seeds: int | Sequence[int],
    systems: Sequence[str] = tuple(SYSTEMS),
) -> Plan:
    """Plan all combinations of stabilizers in each system.

    Args:
        name: Of the grid.
        question: What it asks.
        tasks: Task → what all variants start from.
        seeds: How many, or which.
        systems: Which of `SYSTEMS`.
    """
    variants = [
        Variant(
            label(system, words),
            f"{words} of residual and norm, in the {system}",
            model={"stabilizer": _settings(stabilizer)},
            run={} if SYSTEMS[system] is None else {"simulator": SYSTEMS[system]},
        )
        for system in systems
        for words, stabilizer in STABILIZERS.items()
    ]
    return Plan(name=name, question=question, variants=variants, bases=tasks, seeds=seeds)


def shape(scale: Scale, tasks: Sequence[str], *, blocks: int = 6, **model: Any) -> dict[str, Any]:
    """Return what the models of paper B start from: six blocks (quick: four).

    Args:
        scale: How large.
        tasks: Task names without their ``-mini``.
        blocks: Depth.
        **model: Other fields of the ModelConfig.
    """
    if scale is Scale.FULL:
        wide = {"dim": 128, "heads": 4, "hidden": 512, "blocks": blocks}
        slow = {"updates": 10_000, "batch_size": 32, "learning_rate": 5e-4, "warmup": 500}
        return {task: _preset(wide | model, slow) for task in tasks}
    small = {"dim": 16, "hidden": 32, "blocks": 4} if scale is Scale.QUICK else {}
    short = {
        Scale.QUICK: {"updates": 16, "batch_size": 16, "warmup": 2, "log_every": 1},
        Scale.MINI: {"updates": 400, "warmup": 40, "log_every": 5, "evaluate_every": 100},
    }[scale]
    return bases(
        "mini",
        [f"{task}-mini" for task in tasks],
        model={"blocks": blocks} | small | model,
        training=short,
    )


def compute(
    plan: Plan, folders: Folders, *, workers: int, log: Log, device: str = "cpu"
) -> dict[tuple[str, str, int], Record]:
    """Compute the runs of a plan that are not recorded yet, and return all of them.

    A run that failed before is tried again.

    Args:
        plan: Which runs.
        folders: Where data are found and records left.
        workers: Processes; 1 computes in this one.
        log: Told how it goes.
        device: Where a run's tensors live.
    """
    for run in {run.task: run for run in plan.runs}.values():
        ensure_prepared(run, folders.data, folders.prepared, log)  # a missing file is told at once
    plan.write(folders.results)
    place: Executor = InProcess(folders, log=log, device=device)
    if workers > 1:
        place = Pool(folders, workers, device=device)
    outcome = sweep(plan.runs, place, folders.results, retry_failed=True)
    log(f"{outcome.recorded} runs computed, {outcome.skipped} were recorded before")
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.failed:
        why = next(iter(outcome.failed.values()))
        raise ValueError(
            f"all {len(plan.runs)} runs must be recorded, got {len(outcome.failed)} that failed, "
            f"the first because: {why}; mend the cause and reproduce again: what is recorded stays"
        )
    return {
        (cell.task, cell.variant, cell.seed): read_record(run_folder(folders.results, cell.run))
        for cell, _ in plan.cells
    }


def measure_all(
    plan: Plan, folders: Folders, look: Observation, *, workers: int, log: Log, device: str = "cpu"
) -> Ablation:
    """Compute a plan and measure every run of it."""
    records = compute(plan, folders, workers=workers, log=log, device=device)
    log(f"measuring {len(records)} models")
    measured = {
        key: Measured(record, observe(record, folders, look)) for key, record in records.items()
    }
    return Ablation(plan, measured)


def _settings(stabilizer: Stabilizer) -> dict[str, Any]:
    return {
        "norm": str(stabilizer.norm),
        "kind": str(stabilizer.kind),
        "residual": stabilizer.residual,
        "deepnorm": stabilizer.deepnorm,
    }


def _preset(model: Mapping[str, Any], training: Mapping[str, Any]) -> Preset:
    return Preset(model=ModelConfig(**model), training=TrainingConfig(**training))
