"""What every method with an error estimate can do.

    state, dt   →   a state dt later, the error made, and by how much the next step should differ

A state is its tensors and what the method remembers beside them, so a run can be replayed from the
list of its steps: that is what checkpointing does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from depthpde.shapes import Field
from depthpde.solvers.segment import Segment
from depthpde.solvers.term import Term, add_terms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepState:
    """Where a run stands."""

    t: float
    """The time."""
    tensors: tuple[Tensor, ...]
    """What gradients flow through."""
    memory: Any
    """What the method remembers beside them: past errors, times, its order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepAttempt:
    """One step that was tried."""

    error: float
    """In units of what is allowed: accepted up to 1. NaN where the step left the numbers."""
    factor: float
    """By how much the next step should be longer."""
    state: StepState
    """The state after the step if it is accepted, else the one to try again from."""
    segment: Segment
    """The step, open to be read in between."""

    @property
    def accepted(self) -> bool:
        """Whether the error is within what is allowed; never for NaN."""
        return self.error <= 1


class Stepper(Protocol):
    """A method that chooses its own steps."""

    @property
    def name(self) -> str:
        """Give the name a person asks for it by."""
        ...

    def start(self, u: Field, t: float) -> StepState:
        """Begin at a field."""
        ...

    def first_step(self, state: StepState) -> float:
        """Guess the first step."""
        ...

    def attempt(self, state: StepState, dt: float) -> StepAttempt:
        """Try one step."""
        ...

    def field(self, state: StepState) -> Field:
        """Give the field of a state."""
        ...


def split_linear(terms: tuple[Term, ...]) -> tuple[Term | None, Term]:
    """Part a sum into its linear term, if it has one, and the rest.

    Returns:
        The linear term or None, and the sum of all others, zero where there is none.
    """
    linear = next((term for term in terms if term.generator is not None), None)
    others = tuple(term for term in terms if term is not linear)
    if not others:
        return linear, Term(name="nothing", rhs=lambda u, t: torch.zeros_like(u))
    return linear, add_terms(others)
