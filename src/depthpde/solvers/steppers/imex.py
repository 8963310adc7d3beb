"""Additive Runge–Kutta pairs: diffusion implicit, the rest explicit, as data.

    U_i = u + dt Σ_{j<i} a^E_ij N_j + dt Σ_{j≤i} a^I_ij L U_j,    u′ = u + dt Σ_i b_i (N_i + L U_i)

Kennedy and Carpenter (2003): both halves share b and c, and the implicit half is L-stable, so modes
that diffusion should kill die. A stage costs one solve of the linear term, which is tridiagonal and
O(n) at any length and mask: the choice where a basis of modes would be too dear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from depthpde.shapes import Field
from depthpde.solvers.segment import Hermite
from depthpde.solvers.steppers.embedded import weigh
from depthpde.solvers.steppers.stepper import StepAttempt, StepState
from depthpde.solvers.tableau import Tableau
from depthpde.solvers.term import Term
from depthpde.solvers.tolerance import Tolerance, next_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveTableau:
    """Two Runge–Kutta methods that share their weights."""

    explicit: Tableau
    """What steps the rest."""
    implicit: Tableau
    """What steps the linear term; its diagonal is one number after the first stage."""

    @property
    def name(self) -> str:
        """Give the name a person asks for it by."""
        return self.explicit.name

    @property
    def order(self) -> int:
        """Give the order of both together."""
        return self.explicit.order


def _halves(
    name: str,
    order: int,
    real_axis: float,
    rows: tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]],
    weights: tuple[tuple[float, ...], tuple[float, ...]],
    c: tuple[float, ...],
) -> AdditiveTableau:
    b, low = weights
    error = tuple(high - other for high, other in zip(b, low, strict=True))
    made = [
        Tableau(
            name=name,
            order=order,
            error_order=order - 1,
            real_axis=axis,
            a=tuple((*row, *(0.0,) * (len(b) - len(row))) for row in half),
            b=b,
            c=c,
            error=error,
        )
        for half, axis in zip(rows, (real_axis, float("inf")), strict=True)
    ]
    return AdditiveTableau(explicit=made[0], implicit=made[1])


_G = 1767732205903 / 4055673282236
ARK3 = _halves(
    "ark3", 3, 3.6642045627556263,
    (
        (
            (),
            (1767732205903 / 2027836641118,),
            (5535828885825 / 10492691773637, 788022342437 / 10882634858940),
            (
                6485989280629 / 16251701735622, -4246266847089 / 9704473918619,
                10755448449292 / 10357097424841,
            ),
        ),
        (
            (),
            (_G, _G),
            (2746238789719 / 10658868560708, -640167445237 / 6845629431997, _G),
            (
                1471266399579 / 7840856788654, -4482444167858 / 7529755066697,
                11266239266428 / 11593286722821, _G,
            ),
        ),
    ),
    (
        (
            1471266399579 / 7840856788654, -4482444167858 / 7529755066697,
            11266239266428 / 11593286722821, _G,
        ),
        (
            2756255671327 / 12835298489170, -10771552573575 / 22201958757719,
            9247589265047 / 10645013368117, 2193209047091 / 5459859503100,
        ),
    ),
    (0.0, 1767732205903 / 2027836641118, 3 / 5, 1.0),
)  # fmt: skip
_B4 = (82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211, 1 / 4)
ARK4 = _halves(
    "ark4", 4, 4.234498399636939,
    (
        (
            (),
            (1 / 2,),
            (13861 / 62500, 6889 / 62500),
            (
                -116923316275 / 2393684061468, -2731218467317 / 15368042101831,
                9408046702089 / 11113171139209,
            ),
            (
                -451086348788 / 2902428689909, -2682348792572 / 7519795681897,
                12662868775082 / 11960479115383, 3355817975965 / 11060851509271,
            ),
            (
                647845179188 / 3216320057751, 73281519250 / 8382639484533,
                552539513391 / 3454668386233, 3354512671639 / 8306763924573, 4040 / 17871,
            ),
        ),
        (
            (),
            (1 / 4, 1 / 4),
            (8611 / 62500, -1743 / 31250, 1 / 4),
            (5012029 / 34652500, -654441 / 2922500, 174375 / 388108, 1 / 4),
            (
                15267082809 / 155376265600, -71443401 / 120774400, 730878875 / 902184768,
                2285395 / 8070912, 1 / 4,
            ),
            _B4,
        ),
    ),
    (
        _B4,
        (
            4586570599 / 29645900160, 0.0, 178811875 / 945068544, 814220225 / 1159782912,
            -3700637 / 11593932, 61727 / 225920,
        ),
    ),
    (0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0),
)  # fmt: skip

ADDITIVE: dict[str, AdditiveTableau] = {each.name: each for each in (ARK3, ARK4)}


class AdditiveStepper:
    """Step a linear term implicitly and the rest explicitly.

    Args:
        linear: The linear term, with its solver.
        rest: All other terms.
        tableau: One of `ADDITIVE`.
        tolerance: What error is allowed; None takes every step.
        project: Brings the field back to the surface it must stay on.
    """

    def __init__(
        self,
        linear: Term,
        rest: Term,
        tableau: AdditiveTableau,
        tolerance: Tolerance | None,
        project: Callable[[Field], Field] | None = None,
    ) -> None:
        assert linear.solve is not None, "every form of diffusion can be solved for"
        self.linear, self.solve, self.rest = linear, linear.solve, rest
        self.tableau, self.tolerance, self.project = tableau, tolerance, project
        self.name = tableau.name

    def start(self, u: Field, t: float) -> StepState:
        """Begin at a field: both halves of its rate are the first stage."""
        return StepState(t=t, tensors=(u, self.rest.rhs(u, t), self.linear.rhs(u, t)), memory=1.0)

    def first_step(self, state: StepState) -> float:
        """Guess the first step from the size of the whole rate."""
        assert self.tolerance is not None, "fixed steps need no guess"
        u, rest, spread = state.tensors
        return self.tolerance.first_step(u, rest + spread, self.tableau.explicit.error_order)

    def attempt(self, state: StepState, dt: float) -> StepAttempt:
        """Try one step."""
        u, *first = state.tensors
        explicit, implicit = self.tableau.explicit, self.tableau.implicit
        rests, spreads = [first[0]], [first[1]]
        for i in range(1, len(explicit.c)):
            known = weigh(u, dt, explicit.a[i], rests)
            known = weigh(known, dt, implicit.a[i][:i], spreads)
            own, at = dt * implicit.a[i][i], state.t + explicit.c[i] * dt
            stage = self.solve(known, own, at)
            spreads.append((stage - known) / own)
            rests.append(self.rest.rhs(stage, at))
        after = weigh(weigh(u, dt, explicit.b, rests), dt, explicit.b, spreads)
        after = self.project(after) if self.project else after
        end = state.t + dt
        error, factor = 0.0, 1.0
        if self.tolerance is not None:
            wrong = weigh(torch.zeros_like(u), dt, explicit.error, rests)
            wrong = weigh(wrong, dt, explicit.error, spreads)
            # Modes that diffusion has damped make the estimate, not the error, large: damp it too.
            wrong = self.solve(wrong, dt * implicit.a[1][1], end)
            error = self.tolerance.ratio(wrong, u, after)
            factor = next_factor(error, state.memory, explicit.error_order + 1)
        kept = state
        if error <= 1:
            rates = self.rest.rhs(after, end), self.linear.rhs(after, end)
            kept = StepState(t=end, tensors=(after, *rates), memory=error)
        return StepAttempt(
            error=error,
            factor=factor,
            state=kept,
            segment=Hermite(
                start=state.t, end=end, states=(u, after), rate=self._rate, project=self.project
            ),
        )

    def field(self, state: StepState) -> Field:
        """Give the field of a state."""
        return state.tensors[0]

    def _rate(self, u: Field, t: float) -> Field:
        return self.rest.rhs(u, t) + self.linear.rhs(u, t)
