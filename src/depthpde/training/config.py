"""TrainingConfig: everything that makes a training run, besides the model and the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from depthpde.config import Natural, Positive, Range, Settings
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
class TrainingConfig(Settings):
    """How a model is trained. The same config, model, data and seed give the same weights.

    >>> config = dp.TrainingConfig(updates=400, warmup=40, schedule="linear")
    >>> dp.TrainingConfig.from_dict(config.to_dict()) == config
    True
    """

    updates: Positive = 1000
    """Optimizer updates of the whole run."""
    batch_size: Positive = 32
    """Examples in one batch."""
    accumulate: Positive = 1
    """Batches whose gradients make one update; each counts by its number of examples."""
    learning_rate: Annotated[float, Range(1e-12, 1e3)] = 1e-3
    """At the peak of the schedule."""
    ratio_gain: Annotated[float, Range(0.0, 1e6)] = 10.0
    """Multiplies the learning rate of the diffusion ratios, which hardly move without it."""
    schedule: Schedule | str = Schedule.COSINE
    """How the learning rate falls after the warm-up."""
    warmup: Natural = 100
    """Updates in which the learning rate rises from 0 to its peak."""
    floor: Annotated[float, Range(0.0, 1.0)] = 0.0
    """Share of the peak that cosine and linear schedules end at."""
    weight_decay: Annotated[float, Range(0.0, 1e3)] = 0.01
    """Decoupled, on matrices and tables only: never on biases, gains and ratios."""
    beta1: Annotated[float, Range(0.0, 1 - 1e-9)] = 0.9
    """Memory of the gradient's mean."""
    beta2: Annotated[float, Range(0.0, 1 - 1e-9)] = 0.98
    """Memory of the gradient's square."""
    epsilon: Annotated[float, Range(1e-30, 1.0)] = 1e-8
    """Added to the root of that square."""
    clip: Annotated[float, Range(1e-12, 1e12, "use None for no clipping")] | None = 1.0
    """Largest norm of the whole gradient; None does not clip."""
    precision: Precision | str = Precision.FULL
    """What forward and backward passes compute with, in training only."""
    compile: bool | None = None
    """Whether torch compiles those passes; False is the same as None."""
    label_smoothing: Annotated[float, Range(0.0, 1 - 1e-9)] = 0.0
    """Share of the target spread evenly over all classes, in training only."""
    evaluate_every: Positive = 200
    """Updates between validations; there is one at the end in any case."""
    patience: Positive | None = None
    """Stop after this many validations without a better one; None never stops early."""
    keep: Keep | str = Keep.BEST
    """Which weights the run ends with."""
    checkpoint_every: Positive = 200
    """Updates between checkpoints."""
    log_every: Positive = 50
    """Updates between points of the history."""
    loss_bound: Annotated[float, Range(1e-12, 1e30)] = 100.0
    """A training loss beyond this, or not a number, ends the run as diverged."""
    seed: Natural = 0
    """Of the order of the examples and of dropout."""

    def check(self) -> None:
        """Refuse a warm-up that never ends."""
        # A setting that changes nothing has no part in a run's id.
        self._set(compile=True if self.compile else None)
        if self.warmup >= self.updates:
            raise ValueError(
                f"`warmup` must be less than `updates` = {self.updates}, got {self.warmup}; "
                "a tenth of the updates is usual"
            )


def shorten_warmup(training: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain settings whose warm-up is a tenth of a run that is too short for it.

    For settings whose warm-up nobody has set: a preset's is that of the preset's own length.
    """
    updates, warmup = training.get("updates"), training.get("warmup")
    if not isinstance(updates, int) or not isinstance(warmup, int) or warmup < updates:
        return dict(training)
    return dict(training) | {"warmup": max(0, updates // 10)}
