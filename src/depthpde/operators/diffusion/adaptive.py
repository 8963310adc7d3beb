"""One step whose ratio falls where the field changes much, in one pass each way on the CPU.

    q_e = Σ_d w_d (u_j,d − u_i,d)²,    r_e = ρ e^{−q_e},    e = (i, j = i + 1)
    u_i ← u_i + k r_{i+½} (u_{i+1} − u_i) − r_{i−½} (u_i − u_{i−1})        k = 1, or 0 for upwind

Adjoint, from u alone, with c = 1 (upwind: 0):

    p_e = Σ_d (g_j − c g_i)(u_j − u_i)        h_e = r_e p_e
    F_e = r_e (g_j − c g_i) − 2 h_e w (u_j − u_i)
    ∂u_i = g_i + F_{i+½} − F_{i−½}    ∂w_d = Σ_e h_e (u_j,d − u_i,d)²    ∂ρ = −Σ_e e^{−q_e} p_e

ρ and w travel together, as one row [1, 1, 1 + dim]. Cost: one read and one write forward, two reads
and one write backward; the conductances are never stored. The differences of an edge are worked out
once, for its conductance and for the two sites that exchange through it. An edge whose q is beyond
every number is closed: nothing passes it, in value or gradient.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import (
    Problem,
    accumulation_dtype,
    as_dtype,
    device_module,
    on_gpu,
    sum_to,
)
from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.lanes import (
    aligned,
    fetch,
    fma,
    get,
    load,
    minus,
    plus,
    put,
    scalars,
    show,
    spread,
    store,
    times,
    total,
    width,
    zeros,
)
from depthpde.operators.kernels.rows import AHEAD
from depthpde.operators.kernels.threads import edge_array, launch, tile_length
from depthpde.operators.kernels.walls import is_open, row_of
from depthpde.operators.laplacian import difference, divergence
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field


@inline
def _leave_edge(u, at, dim, w, gaps, to):  # type: ignore[no-untyped-def]
    """Write u_j − u_i of the edge from the site at `at` to the next, and give its q."""
    lanes, sums, q = width(u), zeros(u), w[0] * 0
    for d in range(0, dim - lanes + 1, lanes):
        fetch(u, at + d + AHEAD)
        gap = minus(load(u, at + dim + d), load(u, at + d))
        store(gaps, to + d, gap)
        sums = fma(times(load(w, d), gap), gap, sums)
    for d in range(dim - dim % lanes, dim):
        gap = get(u, at + dim + d) - get(u, at + d)
        gaps[to + d] = gap
        q += w[d] * gap * gap
    return q + total(sums)


@inline
def _leave_slopes(g, at, dim, c, gaps, slopes, to):  # type: ignore[no-untyped-def]
    """Write g_j − c g_i of the edge from the site at `at` to the next, and give its p."""
    lanes, sums, p, much = width(g), zeros(g), c * 0, spread(g, c)
    for d in range(0, dim - lanes + 1, lanes):
        fetch(g, at + d + AHEAD)
        slope = minus(load(g, at + dim + d), times(much, load(g, at + d)))
        store(slopes, to + d, slope)
        sums = fma(slope, load(gaps, to + d), sums)
    for d in range(dim - dim % lanes, dim):
        slope = get(g, at + dim + d) - c * get(g, at + d)
        slopes[to + d] = slope
        p += slope * gaps[to + d]
    return p + total(sums)


@inline
def _close(rows, to, dim):  # type: ignore[no-untyped-def]
    """Forget what was written of an edge: nothing passes it, and it may be no number."""
    for d in range(to, to + dim):
        rows[d] = 0


@inline
def _take(params, b, w):  # type: ignore[no-untyped-def]
    """Copy the weights of sequence b, and give its ρ."""
    row = params[b if params.shape[0] > 1 else 0, 0]
    for d in range(w.shape[0]):
        w[d] = row[1 + d]
    return row[0]


@kernel
def step(u, params, edges, out, shape, k, tile, first, last):  # type: ignore[no-untyped-def]
    """Take one step; k = 0 makes it upwind."""
    _, length, dim = shape
    tiles, lanes, zero = (length + tile - 1) // tile, width(u), k * 0
    w, gaps = aligned(dim, params), aligned(2 * dim, params)  # of the edges ahead and behind
    for task in range(first, last):
        b, start = task // tiles, task % tiles * tile
        row, base, ratio = row_of(edges, b), b * length * dim, _take(params, b, w)
        down, behind = zero, 0  # the ratio of the edge behind, 0 if nothing passes it
        if start > 0 and is_open(edges, row, start - 1):
            down = ratio * math.exp(-_leave_edge(u, base + (start - 1) * dim, dim, w, gaps, behind))
        if not down > 0:
            _close(gaps, behind, dim)
        for i in range(start, min(length, start + tile)):
            at, up, ahead = base + i * dim, zero, dim - behind
            if i + 1 < length and is_open(edges, row, i):
                up = ratio * math.exp(-_leave_edge(u, at, dim, w, gaps, ahead))
            if not up > 0:
                _close(gaps, ahead, dim)
            if not (down > 0 or (up > 0 and k > 0)):
                # nothing reaches this site, so even infinity stays what it is
                for d in range(at, at + dim):
                    put(out, d, get(u, d))
                down, behind = up, ahead
                continue
            used = up if k > 0 else zero  # what comes after a causal site may be no number
            ups, downs = spread(u, used), spread(u, down)
            for d in range(0, dim - lanes + 1, lanes):
                fetch(out, at + d + AHEAD)
                gain, loss = times(ups, load(gaps, ahead + d)), times(downs, load(gaps, behind + d))
                store(out, at + d, plus(load(u, at + d), minus(gain, loss)))
            for d in range(dim - dim % lanes, dim):
                change = used * gaps[ahead + d] - down * gaps[behind + d]
                put(out, at + d, get(u, at + d) + change)
            down, behind = up, ahead


@kernel
def step_adjoint(g, u, params, edges, out, partial, shape, c, tile, first, last):  # type: ignore[no-untyped-def]
    """Give the gradient of the field, and of ρ and w summed over each tile."""
    _, length, dim = shape
    tiles, lanes, zero = (length + tile - 1) // tile, width(u), c * 0
    w, sums = aligned(dim, params), aligned(dim, params)
    gaps, slopes = aligned(2 * dim, params), aligned(2 * dim, params)
    for task in range(first, last):
        b, start = task // tiles, task % tiles * tile
        row, base, ratio = row_of(edges, b), b * length * dim, _take(params, b, w)
        sums[:] = 0
        by_ratio, down, pull, behind = zero, zero, zero, 0  # r and 2h of the edge behind
        if start > 0 and is_open(edges, row, start - 1):
            at = base + (start - 1) * dim
            down = ratio * math.exp(-_leave_edge(u, at, dim, w, gaps, behind))
            p = _leave_slopes(g, at, dim, c, gaps, slopes, behind)
            pull = 2 * down * p if down > 0 else zero
        if not (down > 0 or pull != 0):
            _close(gaps, behind, dim)
            _close(slopes, behind, dim)
        for i in range(start, min(length, start + tile)):
            at, up, push, ahead = base + i * dim, zero, zero, dim - behind
            if i + 1 < length and is_open(edges, row, i):
                share = math.exp(-_leave_edge(u, at, dim, w, gaps, ahead))
                p = _leave_slopes(g, at, dim, c, gaps, slopes, ahead)
                up = ratio * share
                if share > 0:
                    by_ratio -= share * p
                    push = 2 * up * p
            opened, behind_open = up > 0 or push != 0, down > 0 or pull != 0
            if not opened:
                _close(gaps, ahead, dim)
                _close(slopes, ahead, dim)
            if not (opened or behind_open):  # F = 0 on both sides, whatever stands beyond them
                for d in range(at, at + dim):
                    put(out, d, get(g, d))
                down, pull, behind = up, push, ahead
                continue
            ups, downs = spread(u, up), spread(u, down)
            pushes, pulls, half = spread(u, push), spread(u, pull), spread(u, push / 2)
            for d in range(0, dim - lanes + 1, lanes):
                fetch(out, at + d + AHEAD)
                weight, gap = load(w, d), load(gaps, ahead + d)
                front = times(ups, load(slopes, ahead + d))
                front = minus(front, times(pushes, times(weight, gap)))
                rear = times(downs, load(slopes, behind + d))
                rear = minus(rear, times(pulls, times(weight, load(gaps, behind + d))))
                store(out, at + d, plus(load(g, at + d), minus(front, rear)))
                store(sums, d, fma(times(half, gap), gap, load(sums, d)))
            for d in range(dim - dim % lanes, dim):
                gap = gaps[ahead + d]
                front = up * slopes[ahead + d] - push * (w[d] * gap)
                rear = down * slopes[behind + d] - pull * (w[d] * gaps[behind + d])
                put(out, at + d, get(g, at + d) + (front - rear))
                sums[d] += push / 2 * gap * gap
            down, pull, behind = up, push, ahead
        partial[task, 0] = by_ratio
        for d in range(dim):
            partial[task, 1 + d] = sums[d]


def _evolve(u: Field, params: Tensor, edges: Edges | None, problem: Problem) -> Field:
    field, row = u.detach().contiguous(), _ready(params, u)
    batch, length, dim = u.shape
    out, tile = torch.empty_like(field), tile_length(batch, length)
    (k,) = scalars(row.numpy().dtype, 0 if problem.scheme is Scheme.UPWIND else 1)
    launch(
        step, batch * -(-length // tile), u.numel(),
        show(field), row.numpy(), edge_array(edges), show(out), (batch, length, dim), k, tile,
    )  # fmt: skip
    return out


def _adjoint(
    g: Field, u: Field, params: Tensor, edges: Edges | None, problem: Problem
) -> tuple[Field, Tensor]:
    grad, field, row = g.detach().contiguous(), u.detach().contiguous(), _ready(params, u)
    batch, length, dim = u.shape
    out, tile = torch.empty_like(grad), tile_length(batch, length)
    tiles = -(-length // tile)
    partial = torch.empty(batch * tiles, 1 + dim, dtype=row.dtype, device="cpu")
    (c,) = scalars(row.numpy().dtype, 0 if problem.scheme is Scheme.UPWIND else 1)
    launch(
        step_adjoint, batch * tiles, u.numel(),
        show(grad), show(field), row.numpy(), edge_array(edges), show(out), partial.numpy(),
        (batch, length, dim), c, tile,
    )  # fmt: skip
    sums = partial.reshape(batch, tiles, 1 + dim).sum(dim=1, keepdim=True)
    return out, as_dtype(sum_to(sums, params.shape), params.dtype)


def _ready(params: Tensor, u: Field) -> Tensor:
    return as_dtype(params.detach(), accumulation_dtype(u.dtype)).contiguous()


def composite(u: Field, params: Tensor, edges: Edges | None, problem: Problem) -> Field:
    """Take the step with torch operations."""
    dtype = accumulation_dtype(u.dtype)
    field, row = as_dtype(u, dtype), as_dtype(params, dtype)
    gap = difference(field)
    if edges is not None:
        gap = torch.where(edges[..., None], gap, 0.0)
    distance = (gap**2 * row[..., 1:]).sum(dim=-1, keepdim=True)
    flux = row[..., :1] * torch.exp(-distance) * gap
    if problem.scheme is Scheme.UPWIND:
        return as_dtype(field - torch.nn.functional.pad(flux, (0, 0, 1, 0)), u.dtype)
    return as_dtype(field + divergence(flux), u.dtype)


evolve = build("diffuse_adaptive", _evolve, _adjoint, composite, linear=False)


def diffuse_adaptive(
    u: Field, ratio: Tensor, weights: Tensor, edges: Edges | None, problem: Problem
) -> Field:
    """Take one adaptive step on any device.

    Args:
        u: The field.
        ratio: ρ, [1], the largest ratio of an edge.
        weights: w, [dim], finite and not negative.
        edges: True where an edge is open; None for all.
        problem: Its scheme: explicit or upwind.
    """
    params = torch.cat((ratio.to(weights.dtype), weights))[None, None]
    if on_gpu(u):
        return device_module("adaptive").evolve(u, params, edges, problem)
    return (evolve if u.device.type == "cpu" else composite)(u, params, edges, problem)
