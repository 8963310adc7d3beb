"""A filter on a GPU as a torch operator: one launch forward, one backward.

    mirrored   y_i = h_0 u_i + Σ_k h_k (u_{i−k} + u_{i+k})        explicit scheme
    causal     y_i = Σ_k a_k u_{i−k}                              upwind; zeros beyond fixed ends

Taps are given by distance, [batch | 1, reach + 1, dim]. Memory traffic: the field and its halos
read, the result written; backward both fields read, one written, and reach + 1 sums a block.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion import filtering
from depthpde.operators.diffusion.device import blocks, filters
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import Problem, accumulation_dtype, as_dtype, sum_to
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field


def apply(
    u: Field,
    taps: Tensor,
    edges: Edges | None,
    problem: Problem,
    dtype: torch.dtype | None = None,
) -> Field:
    """Filter a field, outside of autograd; `dtype` is what the result is rounded to."""
    field, weights = u.detach().contiguous(), _ready(taps, u)
    out = torch.empty(u.shape, dtype=dtype or u.dtype, device=u.device)
    causal = problem.scheme is Scheme.UPWIND

    def launch(block: blocks.Block) -> None:
        grid, numbers, flags, opened = _geometry(field, weights, edges, problem, block)
        if causal:
            zeros = _zeros(problem)
            filters.causal[grid](field, weights, opened, out, *numbers, ZEROS=zeros, **flags)
        else:
            filters.mirrored[grid](
                field, field, weights, opened, out, out, *numbers, SUMMING=False, **flags
            )

    name = "causal" if causal else "mirrored"
    launch(blocks.choose(name, field, weights.shape[1] - 1, launch))
    return out


def pull(
    g: Field,
    u: Field | None,
    taps: Tensor,
    edges: Edges | None,
    problem: Problem,
    dtype: torch.dtype | None = None,
) -> tuple[Field, Tensor]:
    """Give the gradients of field and taps, outside of autograd; without u the field's alone."""
    grad, weights = g.detach().contiguous(), _ready(taps, g)
    field = grad if u is None else u.detach().contiguous()
    out = torch.empty(g.shape, dtype=dtype or g.dtype, device=g.device)
    causal = problem.scheme is Scheme.UPWIND
    tails = weights.flip(1).cumsum(dim=1).flip(1).contiguous() if causal else weights

    def launch(block: blocks.Block) -> Tensor:
        grid, numbers, flags, opened = _geometry(grad, weights, edges, problem, block)
        count = triton.cdiv(g.shape[1], block[0])
        partial = weights.new_empty(0 if u is None else g.shape[0], count, *weights.shape[1:])
        flags["SUMMING"] = u is not None
        if causal:
            filters.causal_adjoint[grid](
                grad, field, weights, tails, opened, out, partial, *numbers,
                ZEROS=_zeros(problem), **flags,
            )  # fmt: skip
        else:
            filters.mirrored[grid](grad, field, weights, opened, out, partial, *numbers, **flags)
        return partial

    name = f"{'causal_adjoint' if causal else 'mirrored'}, {u is not None}"
    partial = launch(blocks.choose(name, grad, weights.shape[1] - 1, launch))
    if u is None:
        return out, partial
    return out, as_dtype(sum_to(partial.sum(dim=1), taps.shape), taps.dtype)


def _ready(taps: Tensor, u: Field) -> Tensor:
    weights = as_dtype(taps.detach(), accumulation_dtype(u.dtype))
    return weights.expand(-1, -1, u.shape[2]).contiguous()


def _zeros(problem: Problem) -> bool:
    return problem.boundary is Boundary.FIXED


def _geometry(
    u: Field, weights: Tensor, edges: Edges | None, problem: Problem, block: blocks.Block
) -> tuple[tuple[int], tuple[int, ...], dict[str, int | bool], Tensor]:
    """Give the grid, the plain numbers, the compile-time constants and the edges of a launch."""
    (batch, length, dim), reach = u.shape, weights.shape[1] - 1
    sites, features = block
    grid = (batch * triton.cdiv(length, sites) * triton.cdiv(dim, features),)
    opened = u if edges is None else edges.contiguous().view(torch.uint8)
    numbers = (
        length, dim, reach, problem.dilation,
        0 if weights.shape[0] == 1 else (reach + 1) * dim,
        0 if edges is None or edges.shape[0] == 1 else edges.shape[1],
    )  # fmt: skip
    span = 1 if edges is None else triton.next_power_of_2(reach + 1)
    flags = {"HAS_EDGES": edges is not None, "SPAN": span, "SITES": sites, "FEATURES": features}
    return grid, numbers, flags, opened


def composite(u: Field, taps: Tensor, edges: Edges | None, problem: Problem) -> Field:
    """Filter with torch operations."""
    past = taps.flip(1)
    if problem.scheme is not Scheme.UPWIND:
        past = torch.cat((past, taps[:, 1:]), dim=1)
    return filtering.composite(u, past, edges, problem)


evolve = build("filter_by_distance", apply, pull, composite)
