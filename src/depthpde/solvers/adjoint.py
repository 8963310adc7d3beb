"""Gradients by the continuous adjoint: no graph of any step is kept.

    u′ = F(u, t; θ)        a′ = −(∂F/∂u)ᵀ a,   a(T) = ∂loss/∂u(T)        ∂loss/∂θ = ∫ aᵀ ∂F/∂θ dt

The adjoint is solved backwards along the forward solution, which is computed once more and read
from its dense output. Running u itself backwards would need no memory at all, but diffusion
backwards amplifies every rounding error beyond use. What is kept is the start of the interval;
while its gradient is computed, one field a step. The gradient is that of the exact flow within the
tolerance, not of the steps that were taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from depthpde.shapes import Field
from depthpde.solvers.integrate import integrate
from depthpde.solvers.linear.generator import Modes
from depthpde.solvers.steppers.stepper import split_linear
from depthpde.solvers.term import Term, add_terms
from depthpde.solvers.tolerance import Tolerance
from depthpde.solvers.trajectory import Trajectory

GAUSS = ((0.5 - math.sqrt(0.15), 5 / 18), (0.5, 4 / 9), (0.5 + math.sqrt(0.15), 5 / 18))
"""Nodes and weights on [0, 1]: exact to the fifth power."""


def adjoint_step(
    terms: tuple[Term, ...],
    u: Field,
    start: float,
    end: float,
    solve: Callable[[Field], Trajectory],
    tolerance: Tolerance,
) -> Field:
    """Give the field at the end of an interval, with its gradient by the adjoint.

    Args:
        terms: The terms of the equation; every leaf they depend on gets its gradient.
        u: The field at the start.
        start: Where the interval begins.
        end: Where it ends.
        solve: Solves forward from a field, with dense output.
        tolerance: The error of the adjoint's own steps.
    """
    leaves = leaves_of(terms, u, start)
    return _Adjoint.apply(terms, start, end, solve, tolerance, u, *leaves)  # type: ignore[no-untyped-call]


def leaves_of(terms: tuple[Term, ...], u: Field, t: float) -> list[Tensor]:
    """Find every leaf tensor that the rate depends on, beside the field itself.

    Walks the graph of one evaluation, so that what hides in a closure is found too.
    """
    with torch.enable_grad():
        own = u.detach().requires_grad_()
        rate = add_terms(terms).rhs(own, t)
    found: dict[int, Tensor] = {}
    pending, seen = [rate.grad_fn], set()
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf is not own:
            found[id(leaf)] = leaf
        pending += [following for following, _ in node.next_functions]
    return list(found.values())


class _Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        terms: tuple[Term, ...],
        start: float,
        end: float,
        solve: Callable[[Field], Trajectory],
        tolerance: Tolerance,
        u: Field,
        *leaves: Tensor,
    ) -> Field:
        ctx.setting = terms, start, end, solve, tolerance
        ctx.save_for_backward(u, *leaves)
        with torch.no_grad():
            return solve(u).final.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        terms, start, end, solve, tolerance = ctx.setting
        u, *leaves = ctx.saved_tensors
        with torch.no_grad():
            forward = solve(u)
            back = integrate(
                _reversed(terms, forward, end), gradients[0], (0.0, end - start),
                method="auto", tolerance=tolerance,
            )  # fmt: skip
        of_leaves = _quadrature(add_terms(terms), forward, back, end, leaves)
        return None, None, None, None, None, back.final, *of_leaves


def _reversed(terms: tuple[Term, ...], forward: Trajectory, end: float) -> tuple[Term, ...]:
    """Write the adjoint in time run backwards, s = end − t: a diffusion stays a diffusion."""
    linear, rest = split_linear(terms)
    start = forward.states[0]
    if linear is None or linear.generator is None or not isinstance(linear.generator(start), Modes):
        linear, rest = None, add_terms(terms)  # not symmetric: its transpose by autograd as well

    def pull(a: Field, s: float) -> Field:
        t = end - s
        with torch.enable_grad():
            u = forward.at(t).detach().requires_grad_()
            rate = rest.rhs(u, t)
            if not rate.requires_grad:
                return torch.zeros_like(a)
            (pulled,) = torch.autograd.grad(rate, u, a, allow_unused=True, retain_graph=True)
        return torch.zeros_like(a) if pulled is None else pulled

    adjoint = Term(name="adjoint", rhs=pull)
    return (adjoint,) if linear is None else (linear, adjoint)


def _quadrature(
    whole: Term, forward: Trajectory, back: Trajectory, end: float, leaves: list[Tensor]
) -> list[Tensor | None]:
    """Integrate aᵀ ∂F/∂θ over every step of the adjoint."""
    sums: list[Tensor | None] = [None] * len(leaves)
    wanted = [index for index, leaf in enumerate(leaves) if leaf.requires_grad]
    if not wanted:
        return sums
    for segment in back.segments:
        length = segment.end - segment.start
        for node, weight in GAUSS:
            s = segment.start + node * length
            with torch.no_grad():
                a, u = segment.at(s), forward.at(end - s)
            with torch.enable_grad():
                rate = whole.rhs(u.detach(), end - s)
                found = torch.autograd.grad(
                    rate,
                    [leaves[index] for index in wanted],
                    a,
                    allow_unused=True,
                    retain_graph=True,  # α/dx² was computed once for all evaluations
                )
            for index, gradient in zip(wanted, found, strict=True):
                if gradient is not None:
                    share = weight * length * gradient
                    before = sums[index]
                    sums[index] = share if before is None else before + share
    return sums
