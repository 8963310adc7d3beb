"""Several filters of one field, mixed by weights that every site has of its own.

    y = u + Σ_s w_s (F_s u − u)        w: [batch, length, scales]

On the CPU forward reads and writes the field once, whatever the number of scales; backward takes
one pass for the weights' gradient and the adjoint of every scale for w_s g. Elsewhere, inside
torch's transforms and for derivatives of derivatives it is that sum of filters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depthpde.operators.diffusion import filtering
from depthpde.operators.kernels import gated_filters
from depthpde.operators.kernels.lanes import show
from depthpde.operators.kernels.threads import edge_array, launch, tile_length
from depthpde.operators.diffusion.operator import is_plain_call
from depthpde.operators.diffusion.problem import Problem, accumulation_dtype, as_dtype
from depthpde.operators.diffusion.taps import scale_taps
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
            gated_filters.apply_gated, (show(field),), taps, (show(shares),), edges, show(out),
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
        of_weights = torch.empty(weights.shape, dtype=dtype)
        _launch(
            gated_filters.gate_gradient, (show(g), show(field)), taps, (), edges,
            show(of_weights), ctx.problem, ctx.steps, u,
        )  # fmt: skip
        total, of_taps = as_dtype(g, dtype).clone(), []
        for s in range(len(taps)):
            mine = as_dtype(weights[..., s, None], dtype) * g
            part, sums = filtering.pull(mine, field, taps[s : s + 1], edges, ctx.problem)
            total += part.sub_(mine)
            of_taps.append(sums)
        of_field = as_dtype(total, u.dtype)
        return of_field, torch.cat(of_taps), as_dtype(of_weights, weights.dtype), None, None, None


def _launch(
    run: Any,
    fields: tuple[NDArray[Any], ...],
    taps: Tensor,
    shares: tuple[NDArray[Any], ...],
    edges: Edges | None,
    out: NDArray[Any],
    problem: Problem,
    steps: tuple[int, ...],
    u: Field,
) -> None:
    batch, length, dim = u.shape
    chunk, own = tile_length(batch, length), taps.detach().to(accumulation_dtype(u.dtype))
    launch(
        run, batch * -(-length // chunk), u.numel() * len(steps),
        *fields, own.contiguous().numpy(), np.array(steps), *shares, edge_array(edges), out,
        (batch, length, dim), filtering.past_taps(taps, problem), filtering.continuation(problem),
        chunk,
    )  # fmt: skip
