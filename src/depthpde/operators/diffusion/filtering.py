"""A filter along the sequence as a torch operator: taps in, every derivative out.

    y_i = Σ_k a_k (Eu)_{i+k−p},    a: [batch | 1, taps, dim]

E continues every piece beyond its walls (`filters`): by reflection for the explicit scheme, by its
first site for the upwind one, around the circle for periodic ends, by zeros for fixed ones. A site
between two walls, so every padded one, keeps its value to the bit (between zeros it is filtered).
Linear in u and in the taps, so the operator and its adjoint are all that derivatives of any order
need. CPU: numba; GPU: Triton (`device`), if mirrored or causal; elsewhere, in forward mode and in
exported programs: one gather a tap.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import (
    Problem,
    accumulation_dtype,
    as_dtype,
    device_module,
    on_gpu,
    sum_to,
    without_grad,
)
from depthpde.operators.kernels import filters
from depthpde.operators.kernels.lanes import show
from depthpde.operators.kernels.threads import edge_array, launch, tile_length
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field


def is_causal(problem: Problem) -> bool:
    """Say whether all taps look at the past."""
    return problem.scheme is Scheme.UPWIND


def past_taps(taps: Tensor, problem: Problem) -> int:
    """Count the taps that look at the past."""
    length = taps.shape[1]
    return length - 1 if is_causal(problem) else length // 2


def continuation(problem: Problem) -> int:
    """Say how a piece goes on beyond its walls."""
    if problem.boundary is Boundary.PERIODIC:
        return filters.WRAP
    if problem.boundary is Boundary.FIXED:
        return filters.NOTHING
    return filters.REPEAT if problem.scheme is Scheme.UPWIND else filters.REFLECT


def apply(
    u: Field,
    taps: Tensor,
    edges: Edges | None,
    problem: Problem,
    dtype: torch.dtype | None = None,
) -> Field:
    """Filter a field, outside of autograd; `dtype` is what the result is rounded to."""
    field, weights = without_grad(u).contiguous(), _ready(taps, u)
    batch, length, dim = field.shape
    out = torch.empty(u.shape, dtype=dtype or u.dtype, device="cpu")
    chunk = tile_length(batch, length)
    launch(
        filters.apply_filter, batch * -(-length // chunk), u.numel(),
        show(field), weights.numpy(), edge_array(edges), show(out), (batch, length, dim),
        past_taps(taps, problem), continuation(problem), chunk,
    )  # fmt: skip
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
    grad, weights = without_grad(g).contiguous(), _ready(taps, g)
    batch, length, dim = grad.shape
    out = torch.empty(g.shape, dtype=dtype or g.dtype, device="cpu")
    chunk = tile_length(batch, length)
    chunks, kind = -(-length // chunk), continuation(problem)
    partial = weights.new_empty(0 if u is None else batch * chunks, weights.shape[1], dim)
    centred = problem.scheme is not Scheme.UPWIND
    mirrored = centred and torch.equal(weights, weights.flip(1))
    launch(
        filters.filter_adjoint, batch * chunks, g.numel(),
        show(grad), show(grad if u is None else u.detach().contiguous()), weights.numpy(),
        edge_array(edges), show(out), partial.numpy(), (batch, length, dim),
        past_taps(taps, problem), kind, mirrored, chunk,
    )  # fmt: skip
    if u is None:
        return out, partial
    sums = partial.reshape(batch, chunks, *partial.shape[1:]).sum(dim=1)
    return out, as_dtype(sum_to(sums, taps.shape), taps.dtype)


def _ready(taps: Tensor, u: Field) -> Tensor:
    """Give the taps in the precision of computation, one column for each feature."""
    weights = as_dtype(without_grad(taps), accumulation_dtype(u.dtype))
    return weights.expand(-1, -1, u.shape[2]).contiguous()


def composite(u: Field, taps: Tensor, edges: Edges | None, problem: Problem) -> Field:
    """Filter with torch operations: one gather for each tap."""
    field = as_dtype(u, accumulation_dtype(u.dtype))
    weights = as_dtype(taps, field.dtype)
    length, past, kind = u.shape[1], past_taps(taps, problem), continuation(problem)
    low, high = pieces(length, edges, u.device)
    sites = torch.arange(length, device=u.device)[None]
    out = torch.zeros_like(field)
    for k in range(taps.shape[1]):
        j = sites + k - past
        brought = field.gather(1, _sources(j, low, high, kind)[..., None].expand(*u.shape))
        if kind == filters.NOTHING:
            brought = torch.where(((low <= j) & (j < high))[..., None], brought, 0.0)
        out = out + weights[:, k, None] * brought
    if kind == filters.NOTHING:
        return as_dtype(out, u.dtype)
    return torch.where((high - low == 1)[..., None], u, as_dtype(out, u.dtype))


def pieces(length: int, edges: Edges | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Give the piece [low, high) of every site, each [batch | 1, length]."""
    sites = torch.arange(length, device=device)[None]
    if edges is None:
        return torch.zeros_like(sites), torch.full_like(sites, length)
    ends = torch.nn.functional.pad(~edges, (1, 1), value=True)
    low = torch.where(ends[:, :-1], sites, 0).cummax(dim=1).values
    high = torch.where(ends[:, 1:], sites + 1, length).flip(1).cummin(dim=1).values.flip(1)
    return low, high


def _sources(j: Tensor, low: Tensor, high: Tensor, kind: int) -> Tensor:
    """Give the site of which each j is a copy; see `filters`."""
    n = high - low
    if kind == filters.WRAP:
        return low + (j - low) % n
    if kind in (filters.REPEAT, filters.NOTHING):
        return torch.minimum(torch.maximum(j, low), high - 1)
    j = (j - low) % (2 * n)
    return low + torch.minimum(j, 2 * n - 1 - j)


evolve = build("filter", apply, pull, composite)


def convolve(
    u: Field, taps: Tensor, edges: Edges | None, problem: Problem, *, mirrored: bool = False
) -> Field:
    """Filter a field on any device: by compiled kernels where there are some, else by gathers.

    Args:
        u: The field.
        taps: From the farthest past on, [batch | 1, taps, dim].
        edges: True where an edge is open; None for all.
        problem: Its scheme says which taps look at the past, its ends how a piece goes on.
        mirrored: The taps are symmetric, however they are learned; a GPU's kernel needs it
            unless they are causal.
    """
    if on_gpu(u) and problem.scheme is Scheme.UPWIND:
        return device_module("filtering").evolve(u, taps.flip(1), edges, problem)
    if on_gpu(u) and mirrored and problem.boundary is Boundary.NO_FLUX:
        half = taps[:, taps.shape[1] // 2 :]
        return device_module("filtering").evolve(u, half, edges, problem)
    return (evolve if u.device.type == "cpu" else composite)(u, taps, edges, problem)
