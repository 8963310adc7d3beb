"""The adaptive step in Triton: one launch each way; see `adaptive` for the equations.

A program makes a block of sites with all their features, in three turns over them: the distances q
of the edges on both sides of every site (and backward their products p), the conductances, then the
step. Only the first turn reads from memory; the block waits in the cache for the next. Traffic: one
read and one write forward, two reads and one write backward, and 1 + dim sums a block.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from depthpde.operators.diffusion import adaptive
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import Problem, accumulation_dtype, as_dtype, sum_to
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field

SITES, FEATURES = 32, 64


@triton.jit
def _sites(edges, length, edges_batch, HAS_EDGES: tl.constexpr, SITES: tl.constexpr):
    """Give sequence and sites of this program, and whether the edges behind and ahead are open."""
    rows, task = tl.cdiv(length, SITES), tl.program_id(0)
    b, i = (task // rows).to(tl.int64), task % rows * SITES + tl.arange(0, SITES)
    left, right = (i >= 1) & (i < length), i + 1 < length
    if HAS_EDGES:
        row = edges + b * edges_batch
        left = left & (tl.load(row + i - 1, mask=left, other=0) != 0)
        right = right & (tl.load(row + i, mask=right, other=0) != 0)
    return b, i, left, right


@triton.jit
def _three(u, i, d, dim, length, left, right, T: tl.constexpr):
    """Load a block and its neighbours; across a closed edge stands the site itself."""
    at, real = i[:, None] * dim + d[None, :], (d < dim)[None, :]
    here = tl.load(u + at, mask=(i < length)[:, None] & real, other=0.0).to(T)
    low = tl.load(u + at - dim, mask=left[:, None] & real, other=0.0).to(T)
    high = tl.load(u + at + dim, mask=right[:, None] & real, other=0.0).to(T)
    return tl.where(left[:, None], low, here), here, tl.where(right[:, None], high, here)


@triton.jit
def step(
    u, params, edges, out, length, dim, params_batch, edges_batch, k,
    HAS_EDGES: tl.constexpr, SITES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Take one step; k = 0 makes it upwind."""
    T = params.dtype.element_ty
    b, i, left, right = _sites(edges, length, edges_batch, HAS_EDGES, SITES)
    u, out, params = u + b * length * dim, out + b * length * dim, params + b * params_batch
    behind, ahead = tl.zeros([SITES], T), tl.zeros([SITES], T)
    for start in range(0, dim, FEATURES):
        d = start + tl.arange(0, FEATURES)
        low, here, high = _three(u, i, d, dim, length, left, right, T)
        w = tl.load(params + 1 + d, mask=d < dim, other=0.0)[None, :]
        behind += tl.sum(tl.where(left[:, None], w * (here - low) * (here - low), 0.0), axis=1)
        ahead += tl.sum(tl.where(right[:, None], w * (high - here) * (high - here), 0.0), axis=1)
    ratio = tl.load(params)
    down = tl.where(left, ratio * tl.exp(-behind), 0.0)
    up = tl.where(right, ratio * tl.exp(-ahead), 0.0) * k
    left, right = left & (down > 0), right & (up > 0)
    down, up = tl.where(left, down, 0.0), tl.where(right, up, 0.0)
    for start in range(0, dim, FEATURES):
        d = start + tl.arange(0, FEATURES)
        low, here, high = _three(u, i, d, dim, length, left, right, T)
        moved = here + (up[:, None] * (high - here) - down[:, None] * (here - low))
        moved = tl.where((left | right)[:, None], moved, here)
        at = out + i[:, None] * dim + d[None, :]
        mask = (i < length)[:, None] & (d < dim)[None, :]
        tl.store(at, moved.to(out.dtype.element_ty), mask=mask)


@triton.jit
def step_adjoint(
    g, u, params, edges, out, partial, length, dim, params_batch, edges_batch, c,
    HAS_EDGES: tl.constexpr, SITES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Give the gradient of the field, and of ρ and w summed over each block."""
    T = params.dtype.element_ty
    b, i, left, right = _sites(edges, length, edges_batch, HAS_EDGES, SITES)
    base, params = b * length * dim, params + b * params_batch
    g, u, out = g + base, u + base, out + base
    partial += tl.program_id(0).to(tl.int64) * (1 + dim)
    behind, ahead = tl.zeros([SITES], T), tl.zeros([SITES], T)
    pull, push = tl.zeros([SITES], T), tl.zeros([SITES], T)  # p of the edges behind and ahead
    for start in range(0, dim, FEATURES):
        d = start + tl.arange(0, FEATURES)
        low, here, high = _three(u, i, d, dim, length, left, right, T)
        before, now, after = _three(g, i, d, dim, length, left, right, T)
        w = tl.load(params + 1 + d, mask=d < dim, other=0.0)[None, :]
        rear = tl.where(left[:, None], here - low, 0.0)
        front = tl.where(right[:, None], high - here, 0.0)
        behind += tl.sum(w * rear * rear, axis=1)
        ahead += tl.sum(w * front * front, axis=1)
        pull += tl.sum(tl.where(left[:, None], (now - c * before) * rear, 0.0), axis=1)
        push += tl.sum(tl.where(right[:, None], (after - c * now) * front, 0.0), axis=1)
    ratio, share = tl.load(params), tl.exp(-ahead)
    left, right = left & (tl.exp(-behind) > 0), right & (share > 0)
    down = tl.where(left, ratio * tl.exp(-behind), 0.0)
    up = tl.where(right, ratio * share, 0.0)
    pull, push = tl.where(left, 2 * down * pull, 0.0), tl.where(right, push, 0.0)
    tl.store(partial, -tl.sum(tl.where(right, share * push, 0.0), axis=0))
    push = 2 * up * push
    moved = (left & ((down > 0) | (pull != 0))) | (right & ((up > 0) | (push != 0)))
    for start in range(0, dim, FEATURES):
        d = start + tl.arange(0, FEATURES)
        low, here, high = _three(u, i, d, dim, length, left, right, T)
        before, now, after = _three(g, i, d, dim, length, left, right, T)
        w = tl.load(params + 1 + d, mask=d < dim, other=0.0)[None, :]
        rear = tl.where(left[:, None], here - low, 0.0)
        front = tl.where(right[:, None], high - here, 0.0)
        flux = tl.where(right[:, None], up[:, None] * (after - c * now), 0.0)
        flux -= push[:, None] * w * front
        flux -= tl.where(left[:, None], down[:, None] * (now - c * before), 0.0)
        flux += pull[:, None] * w * rear
        total = tl.where(moved[:, None], now + flux, now)
        mask = (i < length)[:, None] & (d < dim)[None, :]
        at = out + i[:, None] * dim + d[None, :]
        tl.store(at, total.to(out.dtype.element_ty), mask=mask)
        by_weight = tl.sum(push[:, None] * 0.5 * front * front, axis=0)
        tl.store(partial + 1 + d, by_weight, mask=d < dim)


def _evolve(u: Field, params: Tensor, edges: Edges | None, problem: Problem) -> Field:
    field, row = u.detach().contiguous(), _ready(params, u)
    out = torch.empty_like(field)
    grid, numbers, flags, opened = _geometry(field, row, edges, problem)
    step[grid](field, row, opened, out, *numbers, **flags)
    return out


def _adjoint(
    g: Field, u: Field, params: Tensor, edges: Edges | None, problem: Problem
) -> tuple[Field, Tensor]:
    grad, field, row = g.detach().contiguous(), u.detach().contiguous(), _ready(params, u)
    out = torch.empty_like(grad)
    grid, numbers, flags, opened = _geometry(field, row, edges, problem)
    partial = row.new_empty(grid[0], 1 + u.shape[2])
    step_adjoint[grid](grad, field, row, opened, out, partial, *numbers, **flags)
    sums = partial.reshape(u.shape[0], -1, 1 + u.shape[2]).sum(dim=1, keepdim=True)
    return out, as_dtype(sum_to(sums, params.shape), params.dtype)


def _ready(params: Tensor, u: Field) -> Tensor:
    return as_dtype(params.detach(), accumulation_dtype(u.dtype)).contiguous()


def _geometry(
    u: Field, row: Tensor, edges: Edges | None, problem: Problem
) -> tuple[tuple[int], tuple[float, ...], dict[str, int | bool], Tensor]:
    """Give the grid, the plain numbers, the compile-time constants and the edges of a launch."""
    batch, length, dim = u.shape
    opened = u if edges is None else edges.contiguous().view(torch.uint8)
    numbers = (
        length, dim,
        0 if row.shape[0] == 1 else 1 + dim,
        0 if edges is None or edges.shape[0] == 1 else edges.shape[1],
        0.0 if problem.scheme is Scheme.UPWIND else 1.0,
    )  # fmt: skip
    features = min(FEATURES, triton.next_power_of_2(dim))
    flags = {"HAS_EDGES": edges is not None, "SITES": SITES, "FEATURES": features}
    return (batch * triton.cdiv(length, SITES),), numbers, flags, opened


evolve = build("diffuse_adaptive_triton", _evolve, _adjoint, adaptive.composite, linear=False)
