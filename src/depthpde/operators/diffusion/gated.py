"""Several filters of one field, mixed by weights that every site has of its own.

    y = u + Σ_s w_s (F_s u − u)        w: [batch, length, scales]

On the CPU forward and backward are one pass each, whatever the number of scales. Elsewhere, inside
torch's transforms and for derivatives of derivatives it is that sum of filters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depthpde.operators.diffusion import filtering
from depthpde.operators.diffusion.operator import is_plain_call
from depthpde.operators.diffusion.problem import Problem, accumulation_dtype, as_dtype
from depthpde.operators.diffusion.taps import scale_taps
from depthpde.operators.kernels import gated_filters
from depthpde.operators.kernels.lanes import show
from depthpde.operators.kernels.threads import edge_array, launch, tile_length
from depthpde.shapes import Edges, Field


def mix_filters(
    u: Field,
    ratios: Tensor,
    weights: Tensor,
    edges: Edges | None,
    problem: Problem,
    steps: tuple[int, ...],
) -> Field:
    """Diffuse at every scale, and mix by the weights of each site.

    Args:
        u: The field.
        ratios: r of every scale and feature, [scales, dim].
        weights: w of every site and scale, [batch, length, scales].
        edges: True where an edge is open; None for all.
        problem: Scheme and ends, the same for all scales.
        steps: Number of equal steps of every scale.
    """
    taps = scale_taps(ratios, steps, causal=filtering.is_causal(problem))
    if u.is_cpu and is_plain_call():
        mixed: Field = _Mixed.apply(u, taps, weights, edges, problem, steps)  # type: ignore[no-untyped-call]
        return mixed
    return _composite(u, taps, weights, edges, problem)


def _composite(
    u: Field, taps: Tensor, weights: Tensor, edges: Edges | None, problem: Problem
) -> Field:
    dtype = accumulation_dtype(u.dtype)
    field = as_dtype(u, dtype)
    change = torch.zeros_like(field)
    for s in range(len(taps)):
        gap = filtering.convolve(field, taps[s : s + 1], edges, problem, mirrored=True) - field
        change = torch.addcmul(change, weights[..., s, None].to(dtype), gap)
    return as_dtype(field + change, u.dtype)


class _Mixed(torch.autograd.Function):
    """The mix in one pass. Kept for backward: the inputs alone."""

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        taps: Tensor,
        weights: Tensor,
        edges: Tensor | None,
        problem: Problem,
        steps: tuple[int, ...],
    ) -> Tensor:
        """Filter, mix, store."""
        ctx.save_for_backward(u, taps, weights, edges)
        ctx.problem, ctx.steps = problem, steps
        field, out = u.detach().contiguous(), torch.empty(u.shape, dtype=u.dtype)
        shares = weights.detach().to(accumulation_dtype(u.dtype)).contiguous()
        _launch(
            gated_filters.apply_gated, (show(field),), taps, shares, edges, (show(out),),
            problem, steps, u,
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Give the gradients of field, taps and weights."""
        u, taps, weights, edges = ctx.saved_tensors
        given = (u, taps, weights)
        if torch.is_grad_enabled():  # they will be differentiated once more
            out = _composite(*given, edges, ctx.problem)
            wanted = [each for each in given if each.requires_grad]
            found = iter(torch.autograd.grad(out, wanted, grads[0], create_graph=True))
            return (*(next(found) if x.requires_grad else None for x in given), None, None, None)
        dtype = accumulation_dtype(u.dtype)
        g, field = grads[0].contiguous(), u.detach().contiguous()
        shares = weights.detach().to(dtype).contiguous()
        of_field, of_weights = torch.empty(u.shape, dtype=u.dtype), torch.empty_like(shares)
        partial = torch.empty(_tasks(u), *taps.shape, dtype=dtype)
        _launch(
            gated_filters.gated_adjoint, (show(g), show(field)), taps, shares, edges,
            (show(of_field), show(of_weights), partial.numpy()), ctx.problem, ctx.steps, u,
        )  # fmt: skip
        of_taps = as_dtype(partial.sum(dim=0), taps.dtype)
        return of_field, of_taps, as_dtype(of_weights, weights.dtype), None, None, None


def _tasks(u: Field) -> int:
    batch, length, _ = u.shape
    return batch * -(-length // tile_length(batch, length))


def _launch(
    run: Any,
    fields: tuple[NDArray[Any], ...],
    taps: Tensor,
    shares: Tensor,
    edges: Edges | None,
    outs: tuple[NDArray[Any], ...],
    problem: Problem,
    steps: tuple[int, ...],
    u: Field,
) -> None:
    batch, length, dim = u.shape
    own = taps.detach().to(accumulation_dtype(u.dtype)).contiguous()
    launch(
        run, _tasks(u), u.numel() * len(steps),
        *fields, own.numpy(), np.array(steps), show(shares), edge_array(edges), *outs,
        (batch, length, dim), filtering.past_taps(taps, problem), filtering.continuation(problem),
        tile_length(batch, length),
    )  # fmt: skip
