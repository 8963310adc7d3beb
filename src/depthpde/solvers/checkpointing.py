"""Gradients through a run in memory of the square root of its steps.

    forward    u_0 → u_1 → … → u_N, keeping nothing but every √N-th state
    backward   piece by piece: step again from the kept state, and differentiate

Exact: the same steps of the same lengths are taken again, so the gradient is that of the whole
run, bit for bit where the arithmetic is deterministic. Costs one forward pass more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from depthpde.shapes import Field
from depthpde.solvers.steppers.stepper import Stepper, StepState


@dataclass(frozen=True, slots=True)
class Taken:
    """One step of a run: where it began, how long it was, and what the method remembered."""

    t: float
    dt: float
    memory: Any


def replay(stepper: Stepper, u: Field, start: float, steps: Sequence[Taken]) -> list[Field]:
    """Take the steps of a run again, differentiable, in memory O(√steps).

    Args:
        stepper: The method, with terms that gradients flow through.
        u: The field at the start.
        start: The time of the start.
        steps: The steps that were kept, from a run without gradients.

    Returns:
        The field after each piece of √N steps; the last is the end of the run.
    """
    size = max(1, math.isqrt(len(steps)))
    tensors = stepper.start(u, start).tensors
    found = []
    for first in range(0, len(steps), size):
        piece = tuple(steps[first : first + size])
        tensors = checkpoint(_advance, stepper, piece, *tensors, use_reentrant=False)
        found.append(stepper.field(StepState(t=piece[-1].t, tensors=tensors, memory=None)))
    return found


def _advance(stepper: Stepper, steps: tuple[Taken, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
    for step in steps:
        state = StepState(t=step.t, tensors=tensors, memory=step.memory)
        attempt = stepper.attempt(state, step.dt)
        tensors = attempt.state.tensors
    return tensors


class Noting:
    """A method that notes the steps it takes, without gradients.

    Args:
        inner: The method.
    """

    def __init__(self, inner: Stepper) -> None:
        self.inner, self.name = inner, inner.name
        self.taken: list[Taken] = []

    def start(self, u: Field, t: float) -> StepState:
        """Begin at a field."""
        return self.inner.start(u, t)

    def first_step(self, state: StepState) -> float:
        """Guess the first step."""
        return self.inner.first_step(state)

    def attempt(self, state: StepState, dt: float) -> Any:
        """Try one step, and note it if it is kept."""
        with torch.no_grad():
            attempt = self.inner.attempt(state, dt)
        if attempt.accepted:
            self.taken.append(Taken(state.t, dt, state.memory))
        return attempt

    def field(self, state: StepState) -> Field:
        """Give the field of a state."""
        return self.inner.field(state)
