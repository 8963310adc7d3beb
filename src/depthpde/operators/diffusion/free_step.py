"""One step of a layer as one node of autograd: from its free parameter to the field.

    r = bound · sigmoid(θ)        u ← S(r) u        ∂θ = bound · s (1 − s) · ∂r,    s = sigmoid(θ)
    r = min(max(θ, 0), bound)     u ← S(r) u        ∂θ = ∂r                    (the projected form)

Nodes of autograd and calls of torch are what a small call costs: they take a hundred times as long
as the step of a short field. On the CPU, outside of compilation and of torch's transforms, one step
is one node and a handful of calls around the kernel of `fused`; everywhere else, and for
derivatives of derivatives, it is the ratio and then the step.
"""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from depthpde.operators.diffusion import dispatch, fused
from depthpde.operators.diffusion.operator import apply_plainly, is_plain_call
from depthpde.operators.diffusion.problem import Problem, accumulation_dtype, without_grad
from depthpde.operators.stability import ratio_from_free, ratio_from_projection
from depthpde.shapes import Edges, Field


def evolve_free(
    u: Field, theta: Tensor, bound: float, edges: Edges | None, problem: Problem, *, projected: bool
) -> Field:
    """Diffuse by the ratio that a free parameter stands for.

    Args:
        u: The field.
        theta: θ of every feature, [dim], or of all of them, [1].
        bound: Largest ratio.
        edges: True where an edge is open; None for all.
        problem: Everything else.
        projected: θ is the ratio itself, kept in [0, bound]; else its sigmoid is taken.
    """
    if not _is_short(u, theta, problem):
        return dispatch.evolve(u, _ratio(theta, bound, projected), edges, problem)
    if torch.is_grad_enabled() and (u.requires_grad or theta.requires_grad):
        field: Tensor = apply_plainly(_Step, u, theta, edges, bound, problem, projected)
        return field
    share = _share(theta, bound, projected)
    return fused.step_once(u, share if projected else bound * share, edges, problem)


def _is_short(u: Field, theta: Tensor, problem: Problem) -> bool:
    """Tell whether the kernel may be called at once."""
    return (
        problem.steps == 1
        and fused.supports(u, problem)
        and is_plain_call()
        and theta.dtype is accumulation_dtype(u.dtype)
        and theta.is_contiguous()
    )


def _ratio(theta: Tensor, bound: float, projected: bool) -> Tensor:
    to_ratio = ratio_from_projection if projected else ratio_from_free
    return to_ratio(theta, bound).reshape(1, 1, -1)


def _share(theta: Tensor, bound: float, projected: bool) -> NDArray[Any]:
    """Give s, or the ratio itself where θ is projected: numpy works faster on a few numbers."""
    return (theta.clamp(0.0, bound) if projected else torch.sigmoid(theta)).numpy()


class _Step(torch.autograd.Function):
    """The step and its ratio together."""

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        theta: Tensor,
        edges: Tensor | None,
        bound: float,
        problem: Problem,
        projected: bool,
    ) -> Tensor:
        """Take the step, and keep the inputs."""
        ctx.save_for_backward(u, theta, edges)
        share = _share(theta, bound, projected)
        ctx.rest = share, bound, problem, projected
        return fused.step_once(u.detach(), share if projected else bound * share, edges, problem)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Run the adjoint; if it will be differentiated once more, through ratio and step."""
        u, theta, edges = ctx.saved_tensors
        share, bound, problem, projected = ctx.rest
        if torch.is_grad_enabled():
            y = fused.evolve(u, _ratio(theta, bound, projected), edges, problem)
            return (*_pull(y, u, theta, grads[0]), None, None, None, None)
        ratio = share if projected else bound * share
        grad = without_grad(grads[0])
        grad_u, sums = fused.adjoint_once(grad, u.detach(), ratio, edges, problem)
        if not projected:
            sums *= bound
            sums *= 1 - share
            sums *= share
        return grad_u, torch.from_numpy(sums), None, None, None, None


def _pull(y: Tensor, u: Tensor, theta: Tensor, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Differentiate y by whichever of the two inputs need it, so that it can be done again."""
    wanted = [x for x in (u, theta) if x.requires_grad]
    found = iter(torch.autograd.grad(y, wanted, g, create_graph=True))
    by_u, by_theta = (next(found) if x.requires_grad else None for x in (u, theta))
    return by_u, by_theta
