"""The stabilizers switched off, two by two, in the Transformer and in its simulator.

    both            u ← u + F(S u)          no residual      u ← F(S u)
    no norm         u ← u + F(u)            neither          u ← F(u)

Same matrices, same first numbers, same order of examples; the norms' own gains go with the norms.
The simulator is the equation with its diffusion, split into turns with dt = 1, so that "no
residual" means the same thing in both: as many steps, each u ← F(u).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from depthpde.papers.experiment import DYNAMICS, INFORMATION, Case
from depthpde.records.evidence import Evidence
from depthpde.records.record import Record, State
from depthpde.sweeps.grid import Plan, Variant, bases
from depthpde.sweeps.scale import Scale

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset
    from depthpde.sweeps.executor import Folders

BOTH, NO_RESIDUAL, NO_NORM, NEITHER = "both", "no residual", "no norm", "neither"
_WHOLE = {"norm": "pre", "kind": "layer", "residual": True, "deepnorm": False}
STABILIZERS: dict[str, dict[str, Any]] = {
    BOTH: _WHOLE,
    NO_RESIDUAL: _WHOLE | {"residual": False},
    NO_NORM: _WHOLE | {"norm": "none"},
    NEITHER: _WHOLE | {"norm": "none", "residual": False},
}
"""What is left of the `Stabilizer`, by what is missing."""
TRANSFORMER, SIMULATOR = "Transformer", "simulator"
SYSTEMS: dict[str, dict[str, Any]] = {
    TRANSFORMER: {},
    SIMULATOR: {"simulator": {"method": "lie", "steps": 1, "diffusion": 0.1}},
}
"""How each system goes through depth: fields of its runs."""
SEEDS = {Scale.QUICK: 3, Scale.MINI: 6, Scale.FULL: 6}
LOOKS: dict[Scale, dict[str, int]] = {
    Scale.QUICK: {"examples": 16, "informed": 512, "tangents": 2, "slices": 8},
    Scale.MINI: {"examples": 32, "informed": 512, "tangents": 4, "slices": 32},
    Scale.FULL: {"examples": 32, "informed": 1024, "tangents": 4, "slices": 32},
}
"""How much of the test split is looked at: fields of an `Observation`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished run and what was measured of it."""

    record: Record
    seen: Mapping[str, Any]
    sliced: Mapping[str, Any] | None = None
    """Its sliced information plane; None where that was not estimated."""

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

    def sliced_layers(self, when: str) -> Sequence[Mapping[str, Any]]:
        """Return the sliced estimates by layer at the start or the end, as far as there are any."""
        if self.sliced is None or (when == "end" and self.diverged):
            return ()
        return self.sliced[when] or ()

    def last(self, name: str, when: str = "end") -> float | None:
        """Return a measure at the last layer; None where there is none."""
        layers = self.at(when).get(name)
        return layers[-1] if layers else None


@dataclass(frozen=True, slots=True)
class Ablation:
    """Every finished run of a plan, measured."""

    plan: Plan | None
    """None where it was read from records alone."""
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
    ) -> dict[str, list[float]]:
        """Return value(variant) − value(baseline) by task, wherever both can be had."""
        ours, theirs = self.of(variant), self.of(baseline)
        found: dict[str, list[float]] = {}
        for key in sorted(ours.keys() & theirs.keys()):
            a, b = value(ours[key]), value(theirs[key])
            if a is not None and b is not None:
                found.setdefault(key[0], []).append(a - b)
        return found


def label(system: str, stabilizer: str) -> str:
    """Return what a variant is called."""
    return f"{system}, {stabilizer}"


def variants(systems: Sequence[str] = tuple(SYSTEMS)) -> tuple[Variant, ...]:
    """Return all combinations of stabilizers in each system.

    Args:
        systems: Which of `SYSTEMS`.
    """
    return tuple(
        Variant(
            label(system, words),
            f"{words} of residual and norm, in the {system}",
            model={"stabilizer": settings},
            run=SYSTEMS[system],
        )
        for system in systems
        for words, settings in STABILIZERS.items()
    )


def shape(
    scale: Scale, tasks: Sequence[str], *, blocks: int = 6, **model: Any
) -> dict[str, Preset]:
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


def measure_all(case: Case) -> Ablation:
    """Measure every run of a case; what was measured before is read."""
    from depthpde.papers.measurements.observation import Observation, observe
    from depthpde.papers.measurements.sliced_plane import sliced_plane

    plan, folders = weights_of(case)
    look = Observation(**LOOKS[Scale(case.scale)])
    case.log(f"measuring {len(case.records)} models")
    measured = {
        key: Measured(record, observe(record, folders, look), sliced_plane(record, folders, look))
        for key, record in case.records.items()
    }
    return Ablation(plan, measured)


def read_ablation(evidence: Evidence | None) -> Ablation | None:
    """Return what was measured of every run of a grid, from its records; None if not of all.

    Args:
        evidence: The finished runs of a grid of stabilizers.
    """
    runs = {} if evidence is None else evidence.runs
    measured = {}
    for (task, variant), seeds in runs.items():
        for seed, record in seeds.items():
            seen, sliced = (_stored(record, name) for name in (DYNAMICS, INFORMATION))
            if seen is None:
                return None
            measured[task, variant, seed] = Measured(record, seen, sliced)
    return Ablation(None, measured) if measured else None


def _stored(record: Record, name: str) -> dict[str, Any] | None:
    path = record.folder / name
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def weights_of(case: Case) -> tuple[Plan, Folders]:
    """Return the plan and the folders of a case that is judged by weights."""
    assert case.plan is not None, "an experiment that reads weights is given its plan"
    assert case.folders is not None, "and the folders that hold them"
    return case.plan, case.folders


def _preset(model: Mapping[str, Any], training: Mapping[str, Any]) -> Preset:
    from depthpde.models.config import ModelConfig
    from depthpde.runs.presets import Preset
    from depthpde.training.config import TrainingConfig

    return Preset(model=ModelConfig(**model), training=TrainingConfig(**training))
