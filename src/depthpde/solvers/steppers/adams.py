"""The exponential Adams method: variable order, variable step, one evaluation a step.

    u(t + h) = e^{hL} u + ∫_0^h e^{(h−s)L} P(t + s) ds        P: N at the last k times, interpolated

Predict with k past values, evaluate N once there, correct with k + 1. In Newton's form

    P = Σ_j N[t_new, t_n, …, t_{n−j+1}] π_j        u′ = φ_0 u + Σ_j h^{j+1} w_j(hL) N[…]_j

the j-th term is what order j + 1 adds to order j, so the errors of the orders k − 1, k and k + 1
are read off, and the order with the longest next step is taken. A smooth solution therefore costs
one evaluation of attention a step at up to order 8, against six for a Runge–Kutta pair of order 5.
Without a linear term this is the classical method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from depthpde.shapes import Field
from depthpde.solvers.linear.generator import Generator
from depthpde.solvers.segment import Flow, monomials
from depthpde.solvers.steppers.stepper import StepAttempt, StepState
from depthpde.solvers.term import Term
from depthpde.solvers.tolerance import SAFETY, SLOWEST, Tolerance

HIGHEST = {torch.float64: 8, torch.float32: 4}
"""Past values are differenced, so fewer digits carry fewer orders."""
GROWTH = 2.0
"""Past times must not crowd: a step is at most twice the last."""
WORTH = 1.1
"""A step that could be longer by less than this stays as it is, which keeps the φ-functions."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the method remembers beside its tensors."""

    times: tuple[float, ...]
    """When N was evaluated, the latest first."""
    order: int
    """How many of them the predictor takes."""
    starting: bool
    """Whether the order still rises by one each step."""
    failures: int
    """Rejected steps in a row."""
    calm: int = 0
    """Steps before the next may be longer. Near a state of rest the error asks for ever longer
    steps until the method is no longer stable: waiting after a failure saves the failures."""


class AdamsStepper:
    """Step an equation with a linear term by the exponential Adams method.

    Args:
        generator: The linear term.
        rest: All other terms.
        tolerance: What error is allowed; None takes every step, at the order `fixed`.
        project: Brings the field back to the surface it must stay on.
        fixed: Keep the predictor at this order; None chooses.
    """

    name = "adams"

    def __init__(
        self,
        generator: Generator,
        rest: Term,
        tolerance: Tolerance | None,
        project: Callable[[Field], Field] | None = None,
        fixed: int | None = None,
    ) -> None:
        self.generator, self.rest, self.tolerance = generator, rest, tolerance
        self.project, self.fixed = project, fixed
        self._phis: tuple[float, Tensor] | None = None  # the last step's, often the next one's too

    def start(self, u: Field, t: float) -> StepState:
        """Begin at a field, with order one."""
        v = self.generator.enter(u)
        memory = Memory(times=(t,), order=1, starting=True, failures=0)
        return StepState(t=t, tensors=(v, self._rest(v, t)), memory=memory)

    def first_step(self, state: StepState) -> float:
        """Guess the first step from the size of the whole rate."""
        assert self.tolerance is not None, "fixed steps need no guess"
        v, rest = state.tensors[:2]
        return self.tolerance.first_step(v, self.generator.rate(v) + rest, 1)

    def attempt(self, state: StepState, dt: float) -> StepAttempt:
        """Try one step."""
        memory: Memory = state.memory
        v, *past = state.tensors
        k, end = memory.order, state.t + dt
        phis = self._phi_functions(dt, v)
        flown = self.generator.act(phis[0], v)
        apart = [(each - state.t) / dt for each in memory.times]
        predicted = flown + self._pushes(phis, dt, apart[: k - 1], past[:k]).sum(dim=0)
        newest = self._rest(predicted, end)
        differences = [newest]
        for difference, time in zip(past, memory.times, strict=True):
            differences.append((differences[-1] - difference) / (end - time))
        wanted = min(k + 2, len(differences), phis.shape[0] - 1)
        nodes = [1.0, *apart[: wanted - 2]]
        pushes = self._pushes(phis, dt, nodes, differences[:wanted])
        moved = flown + pushes[: k + 1].sum(dim=0)
        error, factor, kept = self._judge(pushes, k, v, moved, memory)
        if not error <= 1:
            return self._retry(state, dt, error, k, past[:1], v)
        if self.project:
            moved = self.generator.enter(self.project(self.generator.leave(moved)))
        room = self._highest(v) + 1
        following = replace(kept, times=(end, *memory.times)[:room])
        scale = torch.tensor([dt**j for j in range(k + 1)], dtype=torch.float64)
        table = monomials(nodes[:k])[: k + 1, : k + 1] * scale[:, None]
        return StepAttempt(
            error=error,
            factor=factor,
            state=StepState(t=end, tensors=(moved, *differences[:room]), memory=following),
            segment=Flow(
                start=state.t, end=end, origin=v, combination=table.mT,
                values=differences[: k + 1], generator=self.generator,
                project=self.project,
            ),
        )  # fmt: skip

    def field(self, state: StepState) -> Field:
        """Give the field of a state."""
        return self.generator.leave(state.tensors[0])

    def _rest(self, v: Tensor, t: float) -> Tensor:
        return self.generator.enter(self.rest.rhs(self.generator.leave(v), t))

    def _highest(self, v: Tensor) -> int:
        return self.fixed or HIGHEST.get(v.dtype, 2)

    def _phi_functions(self, dt: float, v: Tensor) -> Tensor:
        if self._phis is None or self._phis[0] != dt or torch.is_grad_enabled():
            self._phis = dt, self.generator.phis(dt, self._highest(v) + 2)
        return self._phis[1]

    def _pushes(
        self, phis: Tensor, dt: float, nodes: list[float], differences: list[Tensor]
    ) -> Tensor:
        """Give what each difference adds to the step, [differences, batch, …]."""
        count = len(differences)
        scale = torch.tensor([dt ** (j + 1) for j in range(count)], dtype=torch.float64)
        table = (monomials(nodes)[:count, :count] * scale[:, None]).to(phis)
        weights = torch.tensordot(table, phis[1 : count + 1], dims=1)
        return self.generator.act(weights, torch.stack(differences))

    def _judge(
        self, pushes: Tensor, k: int, v: Tensor, moved: Tensor, memory: Memory
    ) -> tuple[float, float, Memory]:
        """Measure the error of this order and choose the next order and step."""
        if self.tolerance is None:
            order = min(k + 1, self.fixed or 1)
            return 0.0, 1.0, replace(memory, order=order, failures=0)
        first = max(1, k - 1)
        found = self.tolerance.ratios(pushes[first : k + 2], v, moved)
        ratios = dict(enumerate(found, start=first))
        error = ratios[k]
        if not error <= 1:
            return error, SLOWEST, memory
        longest = {j: _factor(ratio, j) for j, ratio in ratios.items() if j <= self._highest(v)}
        order = max(longest, key=lambda j: longest[j])
        factor = longest[order]
        starting = memory.starting and order >= k and memory.failures == 0
        if starting and k < self._highest(v) and k + 1 not in ratios:
            order = k + 1  # nothing is known of a higher order yet: try it
        factor = min(GROWTH, factor)
        if 1 <= factor < WORTH or (factor > 1 and memory.calm):
            factor = 1.0
        calm = max(0, memory.calm - 1)
        kept = replace(memory, order=order, starting=starting, failures=0, calm=calm)
        return error, factor, kept

    def _retry(
        self, state: StepState, dt: float, error: float, k: int, first: list[Tensor], v: Tensor
    ) -> StepAttempt:
        memory: Memory = state.memory
        failures = memory.failures + 1
        order = max(1, k - 1) if failures > 1 else k
        retried = replace(
            memory, order=order, failures=failures, starting=False, calm=k + 1
        )  # fmt: skip
        factor = max(SLOWEST, _factor(error, k)) if error < float("inf") else SLOWEST
        return StepAttempt(
            error=error,
            factor=factor,
            state=StepState(t=state.t, tensors=state.tensors, memory=retried),
            segment=Flow(
                start=state.t, end=state.t + dt, origin=v, combination=torch.ones(1, 1),
                values=first, generator=self.generator,
            ),
        )  # fmt: skip


def _factor(ratio: float, order: int) -> float:
    return SAFETY * max(ratio, 1e-9) ** (-1 / (order + 1))
