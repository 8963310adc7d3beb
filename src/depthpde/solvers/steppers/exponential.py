"""Exponential Runge–Kutta methods: the linear term exact, as data.

    U_i = φ_0(c_i z) u + dt Σ_j a_ij(z) N_j,    N_i = N(U_i, t + c_i dt),    z = dt L
    u′  = φ_0(z) u + dt Σ_i b_i(z) N_i,         e = dt Σ_i e_i(z) N_i

Every coefficient is a combination of φ_k(c z). The row b reads N as a polynomial in time, which is
also the dense output. Stiff diffusion costs nothing in stability; in accuracy, Krogstad's stages
fall to order three where it is stiff, those of Hochbruck and Ostermann keep order four.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from depthpde.shapes import Field
from depthpde.solvers.linear.generator import Generator
from depthpde.solvers.segment import Flow
from depthpde.solvers.steppers.stepper import StepAttempt, StepState
from depthpde.solvers.term import Term
from depthpde.solvers.tolerance import Tolerance, next_factor

Combination = tuple[tuple[float, int, float], ...]
"""Σ factor · φ_k(c z), as (factor, k, c)."""
ZERO: Combination = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialTableau:
    """The coefficients of one exponential Runge–Kutta method."""

    name: str
    """How a person asks for it."""
    order: int
    """The error of one step is O(dt^(order + 1)) where the linear term is not stiff."""
    c: tuple[float, ...]
    """When stage i looks, in units of dt."""
    a: tuple[tuple[Combination, ...], ...]
    """What stage i takes of the stages before it."""
    powers: tuple[tuple[float, ...], ...]
    """N as a polynomial: p_j = Σ_i powers_ji N_i, so that b_i = Σ_j powers_ji φ_{j+1}."""
    error: tuple[Combination, ...]
    """What the error takes of each stage and, last, of N at the end of the step."""
    error_order: int
    """The error estimate is O(dt^(error_order + 1))."""


def _phi(factor: float, k: int, c: float = 1.0) -> Combination:
    return ((factor, k, c),)


ETD1 = ExponentialTableau(
    name="etd1",
    order=1,
    c=(0.0,),
    a=((),),
    powers=((1.0,),),
    error=(_phi(-1, 2), _phi(1, 2)),
    error_order=1,
)
ETD2 = ExponentialTableau(
    name="etd2",
    order=2,
    c=(0.0, 1.0),
    a=((), (_phi(1, 1),)),
    powers=((1.0, 0.0), (-1.0, 1.0)),
    error=(ZERO, _phi(-1, 2), _phi(1, 2)),
    error_order=2,
)
_FOURTH = ((1.0, 0.0, 0.0, 0.0), (-3.0, 2.0, 2.0, -1.0), (4.0, -4.0, -4.0, 4.0))
_LAST = _phi(-1, 2) + _phi(4, 3)
_MINUS_LAST = _phi(1, 2) + _phi(-4, 3)
COX_MATTHEWS = ExponentialTableau(
    name="etd4_cox_matthews",
    order=4,
    c=(0.0, 0.5, 0.5, 1.0),
    a=(
        (),
        (_phi(0.5, 1, 0.5),),
        (ZERO, _phi(0.5, 1, 0.5)),
        (_phi(1, 1) + _phi(-1, 1, 0.5), ZERO, _phi(1, 1, 0.5)),
    ),
    powers=_FOURTH,
    error=(ZERO, ZERO, ZERO, _MINUS_LAST, _LAST),
    error_order=3,
)
KROGSTAD = ExponentialTableau(
    name="etd4",
    order=4,
    c=(0.0, 0.5, 0.5, 1.0),
    a=(
        (),
        (_phi(0.5, 1, 0.5),),
        (_phi(0.5, 1, 0.5) + _phi(-1, 2, 0.5), _phi(1, 2, 0.5)),
        (_phi(1, 1) + _phi(-2, 2), ZERO, _phi(2, 2)),
    ),
    powers=_FOURTH,
    error=(ZERO, ZERO, ZERO, _MINUS_LAST, _LAST),
    error_order=3,
)
# a_52 = ½φ_2(z/2) − φ_3(z) + ¼φ_2(z) − ½φ_3(z/2)
_A52 = _phi(0.5, 2, 0.5) + _phi(-1, 3) + _phi(0.25, 2) + _phi(-0.5, 3, 0.5)
_A54 = _phi(-0.25, 2, 0.5) + _phi(1, 3) + _phi(-0.25, 2) + _phi(0.5, 3, 0.5)
HOCHBRUCK_OSTERMANN = ExponentialTableau(
    name="etd4_stiff",
    order=4,
    c=(0.0, 0.5, 0.5, 1.0, 0.5),
    a=(
        (),
        (_phi(0.5, 1, 0.5),),
        (_phi(0.5, 1, 0.5) + _phi(-1, 2, 0.5), _phi(1, 2, 0.5)),
        (_phi(1, 1) + _phi(-2, 2), _phi(1, 2), _phi(1, 2)),
        (
            # a_51 = ½φ_1(z/2) − 2 a_52 − a_54
            _phi(0.5, 1, 0.5) + _phi(-0.75, 2, 0.5) + _phi(1, 3) + _phi(-0.25, 2)
            + _phi(0.5, 3, 0.5),
            _A52,
            _A52,
            _A54,
        ),
    ),
    powers=(
        (1.0, 0.0, 0.0, 0.0, 0.0),
        (-3.0, 0.0, 0.0, -1.0, 4.0),
        (4.0, 0.0, 0.0, 4.0, -8.0),
    ),
    error=(ZERO, ZERO, ZERO, _MINUS_LAST, ZERO, _LAST),
    error_order=3,
)  # fmt: skip

EXPONENTIAL: dict[str, ExponentialTableau] = {
    each.name: each for each in (ETD1, ETD2, KROGSTAD, COX_MATTHEWS, HOCHBRUCK_OSTERMANN)
}


class ExponentialStepper:
    """Step an equation with a linear term by an exponential Runge–Kutta method.

    Args:
        generator: The linear term.
        rest: All other terms.
        tableau: One of `EXPONENTIAL`.
        tolerance: What error is allowed; None takes every step.
        project: Brings the field back to the surface it must stay on.
    """

    def __init__(
        self,
        generator: Generator,
        rest: Term,
        tableau: ExponentialTableau,
        tolerance: Tolerance | None,
        project: Callable[[Field], Field] | None = None,
    ) -> None:
        self.generator, self.rest, self.tableau = generator, rest, tableau
        self.tolerance, self.project = tolerance, project
        self.name = tableau.name

    def start(self, u: Field, t: float) -> StepState:
        """Begin at a field: the rest of its rate is the first stage."""
        v = self.generator.enter(u)
        return StepState(t=t, tensors=(v, self._rest(v, t)), memory=1.0)

    def first_step(self, state: StepState) -> float:
        """Guess the first step from the size of the whole rate."""
        assert self.tolerance is not None, "fixed steps need no guess"
        v, rest = state.tensors
        rate = self.generator.rate(v) + rest
        return self.tolerance.first_step(v, rate, self.tableau.error_order)

    def attempt(self, state: StepState, dt: float) -> StepAttempt:
        """Try one step."""
        v, first = state.tensors
        tableau = self.tableau
        phis = {c: self.generator.phis(c * dt, 3) for c in {1.0, *tableau.c} if c}
        stages = [first]
        for c, row in zip(tableau.c[1:], tableau.a[1:], strict=True):
            moved = self.generator.act(phis[c][0], v)
            moved = self._add(moved, dt, row, stages, phis)
            stages.append(self._rest(moved, state.t + c * dt))
        values = torch.stack(stages)
        powers = torch.tensor(tableau.powers, dtype=values.dtype, device=values.device)
        pushed = torch.tensordot(powers, values, dims=1)
        moved = self.generator.act(phis[1.0][0], v)
        moved = moved + dt * self.generator.act(phis[1.0][1 : len(powers) + 1], pushed).sum(0)
        if self.project:
            moved = self.generator.enter(self.project(self.generator.leave(moved)))
        end = state.t + dt
        last = self._rest(moved, end)
        error, factor = 0.0, 1.0
        if self.tolerance is not None:
            zero = torch.zeros_like(v)
            wrong = self._add(zero, dt, tableau.error, [*stages, last], phis)
            own = tableau.error_order == tableau.order  # the error of what is kept
            error = self.tolerance.ratio(wrong / dt if own else wrong, v, moved)
            factor = next_factor(error, state.memory, tableau.error_order + (not own))
        return StepAttempt(
            error=error,
            factor=factor,
            state=StepState(t=end, tensors=(moved, last), memory=error) if error <= 1 else state,
            segment=Flow(
                start=state.t, end=end, origin=v, combination=powers, values=stages,
                generator=self.generator, project=self.project,
            ),
        )  # fmt: skip

    def field(self, state: StepState) -> Field:
        """Give the field of a state."""
        return self.generator.leave(state.tensors[0])

    def _rest(self, v: Tensor, t: float) -> Tensor:
        return self.generator.enter(self.rest.rhs(self.generator.leave(v), t))

    def _add(
        self,
        v: Tensor,
        dt: float,
        row: tuple[Combination, ...],
        stages: list[Tensor],
        phis: dict[float, Tensor],
    ) -> Tensor:
        for combination, stage in zip(row, stages, strict=False):
            if combination:
                weight = sum(
                    (factor * phis[c][k] for factor, k, c in combination[1:]),
                    start=combination[0][0] * phis[combination[0][2]][combination[0][1]],
                )
                v = v + dt * self.generator.act(weight, stage)
        return v
