"""Methods of fixed steps: a tableau's step of the sum, or turns of a splitting; and twice each."""

from __future__ import annotations

from collections.abc import Callable

import torch

from depthpde.shapes import Field
from depthpde.solvers.segment import Hermite
from depthpde.solvers.splitting import Splitting, split_step
from depthpde.solvers.step import step
from depthpde.solvers.steppers.stepper import StepAttempt, StepState
from depthpde.solvers.tableau import Tableau
from depthpde.solvers.term import Term, add_terms
from depthpde.solvers.tolerance import Tolerance, next_factor


class FixedStepper:
    """Take every step, of the length it is given.

    Args:
        terms: The terms, in the order of their turns.
        tableau: The method.
        splitting: Lie or Strang to give the terms turns; None to step their sum.
        project: Brings the field back to the surface it must stay on.
    """

    def __init__(
        self,
        terms: tuple[Term, ...],
        tableau: Tableau,
        splitting: Splitting | None = None,
        project: Callable[[Field], Field] | None = None,
    ) -> None:
        self.terms, self.tableau, self.splitting, self.project = terms, tableau, splitting, project
        self.whole = add_terms(terms)
        self.name = tableau.name if splitting is None else f"{splitting.value}/{tableau.name}"

    def start(self, u: Field, t: float) -> StepState:
        """Begin at a field."""
        return StepState(t=t, tensors=(u,), memory=None)

    def first_step(self, state: StepState) -> float:
        """Refuse: the length of a step is given."""
        raise ValueError(
            f"`rtol` must be left out for {self.name}, which does not know the error of its step; "
            "use substeps, or a method such as 'auto'"
        )

    def attempt(self, state: StepState, dt: float) -> StepAttempt:
        """Take one step."""
        u = self.advance(state.tensors[0], state.t, dt)
        end = state.t + dt
        return StepAttempt(
            error=0.0,
            factor=1.0,
            state=StepState(t=end, tensors=(u,), memory=None),
            segment=Hermite(
                start=state.t,
                end=end,
                states=(state.tensors[0], u),
                rate=self.whole.rhs,
                project=self.project,
            ),
        )

    def advance(self, u: Field, t: float, dt: float) -> Field:
        """Give the field one step later."""
        if self.splitting is None:
            u = step(self.whole, u, t, dt, self.tableau)
            return self.project(u) if self.project else u
        return split_step(
            self.terms,
            u,
            t,
            dt,
            tableau=self.tableau,
            splitting=self.splitting,
            project=self.project,
        )

    def field(self, state: StepState) -> Field:
        """Give the field of a state."""
        return state.tensors[0]


class DoublingStepper:
    """Estimate the error of any method of fixed steps by taking each step twice.

        e = (u_{h/2, h/2} − u_h) / (2^p − 1)        p: the method's order

    The two half steps are kept. What makes Strang splitting adaptive: it shares no stages with
    anything of another order, so nothing cheaper knows its error.

    Args:
        inner: The method.
        order: Its order p.
        tolerance: What error is allowed.
    """

    def __init__(self, inner: FixedStepper, order: int, tolerance: Tolerance) -> None:
        self.inner, self.order, self.tolerance = inner, order, tolerance
        self.name = inner.name

    def start(self, u: Field, t: float) -> StepState:
        """Begin at a field."""
        return StepState(t=t, tensors=(u,), memory=1.0)

    def first_step(self, state: StepState) -> float:
        """Guess the first step from the size of the rate."""
        u = state.tensors[0]
        rate = self.inner.whole.rhs(u, state.t)
        return self.tolerance.first_step(u, rate, self.order)

    def attempt(self, state: StepState, dt: float) -> StepAttempt:
        """Try one step, and two of half its length."""
        u, t, half = state.tensors[0], state.t, 0.5 * dt
        middle = self.inner.advance(u, t, half)
        after = self.inner.advance(middle, t + half, half)
        with torch.no_grad():
            whole = self.inner.advance(u.detach(), t, dt)
            wrong = (after.detach() - whole) / (2**self.order - 1)
        error = self.tolerance.ratio(wrong / dt, u, after)
        kept = StepState(t=t + dt, tensors=(after,), memory=error)
        return StepAttempt(
            error=error,
            factor=next_factor(error, state.memory, self.order),
            state=kept if error <= 1 else state,
            segment=Hermite(
                start=t, end=t + dt, states=(u, after), rate=self.inner.whole.rhs,
                project=self.inner.project,
            ),
        )  # fmt: skip

    def field(self, state: StepState) -> Field:
        """Give the field of a state."""
        return state.tensors[0]
