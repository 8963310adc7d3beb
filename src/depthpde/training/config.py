"""TrainingConfig: everything that makes a training run, besides the model and the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from depthpde.errors import check_name, check_one_of, check_positive, check_range
from depthpde.training.schedule import Schedule


class Keep(StrEnum):
    """Which weights a run ends with."""

    BEST = "best"
    """Those of the best validation; the last ones where there is no validation."""
    LAST = "last"
    """Those after the last update."""


class Precision(StrEnum):
    """The numbers that training computes with; weights and validation keep their own."""

    FULL = "full"
    """Those of the weights."""
    BFLOAT16 = "bfloat16"
    """Half as wide where torch's autocast finds it safe; faster where the device has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """How a model is trained. The same config, model, data and seed give the same weights."""

    updates: int = 1000
    """Optimizer updates of the whole run."""
    batch_size: int = 32
    """Examples in one batch."""
    accumulate: int = 1
    """Batches whose gradients make one update; each counts by its number of examples."""
    learning_rate: float = 1e-3
    """At the peak of the schedule."""
    ratio_gain: float = 10.0
    """Multiplies the learning rate of the diffusion ratios, which hardly move without it."""
    schedule: Schedule | str = Schedule.COSINE
    """How the learning rate falls after the warm-up."""
    warmup: int = 100
    """Updates in which the learning rate rises from 0 to its peak."""
    floor: float = 0.0
    """Share of the peak that cosine and linear schedules end at."""
    weight_decay: float = 0.01
    """Decoupled, on matrices and tables only: never on biases, gains and ratios."""
    beta1: float = 0.9
    """Memory of the gradient's mean."""
    beta2: float = 0.98
    """Memory of the gradient's square."""
    epsilon: float = 1e-8
    """Added to the root of that square."""
    clip: float | None = 1.0
    """Largest norm of the whole gradient; None does not clip."""
    precision: Precision | str = Precision.FULL
    """What forward and backward passes compute with, in training only."""
    compile: bool | None = None
    """Whether torch compiles those passes; False is the same as None."""
    label_smoothing: float = 0.0
    """Share of the target spread evenly over all classes, in training only."""
    evaluate_every: int = 200
    """Updates between validations; there is one at the end in any case."""
    patience: int | None = None
    """Stop after this many validations without a better one; None never stops early."""
    keep: Keep | str = Keep.BEST
    """Which weights the run ends with."""
    checkpoint_every: int = 200
    """Updates between checkpoints."""
    log_every: int = 50
    """Updates between points of the history."""
    loss_bound: float = 100.0
    """A training loss beyond this, or not a number, ends the run as diverged."""
    seed: int = 0
    """Of the order of the examples and of dropout."""

    def __post_init__(self) -> None:
        """Refuse a config that cannot run."""
        object.__setattr__(self, "schedule", check_one_of("schedule", self.schedule, Schedule))
        object.__setattr__(self, "precision", check_one_of("precision", self.precision, Precision))
        object.__setattr__(self, "keep", check_one_of("keep", self.keep, Keep))
        for name in (
            "updates", "batch_size", "accumulate", "evaluate_every", "checkpoint_every", "log_every"
        ):  # fmt: skip
            check_positive(name, getattr(self, name))
        # Kept as floats: 1 and 1.0 are one setting, and give a run one name.
        for name, low, high in _RANGES:
            object.__setattr__(self, name, check_range(name, getattr(self, name), low, high))
        if self.compile not in (None, True, False):
            raise ValueError(f"`compile` must be True or False, got {self.compile!r}")
        # A setting that says nothing has no part in a run's name.
        object.__setattr__(self, "compile", True if self.compile else None)
        if self.clip is not None:
            clip = check_range("clip", self.clip, 1e-12, 1e12, advice="use None for no clipping")
            object.__setattr__(self, "clip", clip)
        if self.patience is not None:
            check_positive("patience", self.patience)
        for name in ("warmup", "seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"`{name}` must be a whole number of at least 0, got {value!r}")
        if self.warmup >= self.updates:
            raise ValueError(
                f"`warmup` must be less than `updates` = {self.updates}, got {self.warmup}; "
                "a tenth of the updates is usual"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the config as plain JSON values."""
        return {
            name: value.value if isinstance(value, StrEnum) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Return the config of plain values, or say which key is unknown and the nearest one."""
        if not isinstance(values, Mapping):
            raise ValueError(f"`config` must be a mapping of settings, got {values!r}")
        known = [each.name for each in fields(cls)]
        return cls(**{check_name("config key", key, known): value for key, value in values.items()})


_RANGES = (
    ("learning_rate", 1e-12, 1e3),
    ("ratio_gain", 0.0, 1e6),
    ("floor", 0.0, 1.0),
    ("weight_decay", 0.0, 1e3),
    ("beta1", 0.0, 1 - 1e-9),
    ("beta2", 0.0, 1 - 1e-9),
    ("epsilon", 1e-30, 1.0),
    ("label_smoothing", 0.0, 1 - 1e-9),
    ("loss_bound", 1e-12, 1e30),
)
