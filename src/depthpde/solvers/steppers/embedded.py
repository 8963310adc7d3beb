"""Embedded Runge–Kutta pairs with step control.

k_i = F(u + dt Σ_{j<i} a_ij k_j, t + c_i dt),    u′ = u + dt Σ b_i k_i,    e = dt Σ (b_i − b̂_i) k_i
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from depthpde.shapes import Field
from depthpde.solvers.segment import Hermite
from depthpde.solvers.steppers.stepper import StepAttempt, StepState
from depthpde.solvers.tableau import Tableau
from depthpde.solvers.term import Term
from depthpde.solvers.tolerance import Tolerance, next_factor


class EmbeddedStepper:
    """Step the sum of all terms by an explicit pair whose last stage begins the next step.

    Args:
        term: The sum.
        tableau: One of `PAIRS`.
        tolerance: What error is allowed; None takes every step.
        project: Brings the field back to the surface it must stay on.
    """

    def __init__(
        self,
        term: Term,
        tableau: Tableau,
        tolerance: Tolerance | None,
        project: Callable[[Field], Field] | None = None,
    ) -> None:
        self.term, self.tableau, self.tolerance, self.project = term, tableau, tolerance, project
        self.name = tableau.name

    def start(self, u: Field, t: float) -> StepState:
        """Begin at a field: its rate is the first stage."""
        return StepState(t=t, tensors=(u, self.term.rhs(u, t)), memory=1.0)

    def first_step(self, state: StepState) -> float:
        """Guess the first step from the size of the rate."""
        assert self.tolerance is not None, "fixed steps need no guess"
        u, rate = state.tensors
        return self.tolerance.first_step(u, rate, self.tableau.error_order)

    def attempt(self, state: StepState, dt: float) -> StepAttempt:
        """Try one step."""
        u, first = state.tensors
        slopes = [first]
        moved = u
        for row, at in zip(self.tableau.a[1:], self.tableau.c[1:], strict=True):
            moved = weigh(u, dt, row, slopes)
            slopes.append(self.term.rhs(moved, state.t + at * dt))
        after = self.project(moved) if self.project else moved
        end = state.t + dt
        error, factor = 0.0, 1.0
        if self.tolerance is not None:
            wrong = weigh(torch.zeros_like(u), dt, self.tableau.error, slopes)
            error = self.tolerance.ratio(wrong, u, after)
            factor = next_factor(error, state.memory, self.tableau.error_order + 1)
        kept = error <= 1
        return StepAttempt(
            error=error,
            factor=factor,
            state=StepState(t=end, tensors=(after, slopes[-1]), memory=error) if kept else state,
            segment=Hermite(
                start=state.t, end=end, states=(u, after), rate=self.term.rhs,
                slopes=(first, slopes[-1]), project=self.project,
            ),
        )  # fmt: skip

    def field(self, state: StepState) -> Field:
        """Give the field of a state."""
        return state.tensors[0]


def weigh(u: Tensor, dt: float, weights: Sequence[float], slopes: Sequence[Tensor]) -> Tensor:
    """Add weighted slopes to a field.

    u + dt Σ_i w_i k_i
    """
    for weight, slope in zip(weights, slopes, strict=False):
        if weight:
            u = torch.add(u, slope, alpha=dt * weight)
    return u
