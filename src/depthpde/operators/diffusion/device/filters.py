"""A filter along the sequence in Triton: any number of equal steps, or of scales, in one launch.

    y_i = h_0 u_i + Σ_k h_k ((Eu)_{i−k} + (Eu)_{i+k})      mirrored: E reflects at walls
    y_i = Σ_k a_k (Eu)_{i−k}                               causal: E repeats the first site, or is 0

A program makes a block of sites and features. It reads the block and a halo of `reach` sites on
either side from memory, then every tap from the first cache, in the field's own precision; sums are
float32 (float64 for such fields) and rounded once, at the store. Blocks that no wall is near skip
the bookkeeping of walls. The mirrored filter is its own adjoint; the causal one gathers from the
future, and a first site that stood for its past has its taps summed. With `SUMMING` the same
launch also sums Σ_i g_i (Eu)_{i±k} over its block, for the gradient of every tap.

`dilation` is the distance between neighbours: sites of one phase form a chain of their own, whose
positions are counted in m.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _place(length, dim, SITES: tl.constexpr, FEATURES: tl.constexpr):
    """Give sequence, block of sites, sites and features of this program; features are fastest."""
    columns, rows = tl.cdiv(dim, FEATURES), tl.cdiv(length, SITES)
    task = tl.program_id(0)
    b, block = task // columns // rows, task // columns % rows
    i = block * SITES + tl.arange(0, SITES)
    return b.to(tl.int64), block, i, task % columns * FEATURES + tl.arange(0, FEATURES)


@triton.jit
def _piece(edges, i, m, length, dilation, HAS_EDGES: tl.constexpr, SPAN: tl.constexpr):
    """Give the piece [low, high) of every site; a wall beyond SPAN ≥ the reach is none."""
    low, high = m * 0, (length - i % dilation + dilation - 1) // dilation
    if HAS_EDGES:
        t, last = tl.arange(0, SPAN)[None, :], length - dilation
        behind, ahead = i[:, None] - dilation * (1 + t), i[:, None] + dilation * t
        opened = tl.load(edges + behind, mask=(behind >= 0) & (behind < last), other=0)
        low = m - tl.min(tl.where(opened == 0, t, SPAN), axis=1)
        opened = tl.load(edges + ahead, mask=ahead < last, other=0)
        high = m + 1 + tl.min(tl.where(opened == 0, t, SPAN), axis=1)
    return low, high


@triton.jit
def _row(u, i, d, dim, mask, T: tl.constexpr):
    """Load one site a row, in the precision of the sums."""
    return tl.load(u + i[:, None] * dim + d[None, :], mask=mask, other=0.0).to(T)


@triton.jit
def mirrored(
    u, g, half, edges, out, sums,
    length, dim, reach, dilation, half_batch, edges_batch,
    HAS_EDGES: tl.constexpr, SUMMING: tl.constexpr, SPAN: tl.constexpr,
    SITES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Filter u by symmetric taps; with SUMMING, also sum what each tap brings times g."""
    T = half.dtype.element_ty
    b, block, i, d = _place(length, dim, SITES, FEATURES)
    base, half = b * length * dim, half + b * half_batch + d
    u, m, phase = u + base, i // dilation, i % dilation
    low, high = _piece(edges + b * edges_batch, i, m, length, dilation, HAS_EDGES, SPAN)
    inside = (i < length)[:, None] & (d < dim)[None, :]
    alone = (high - low == 1)[:, None]
    here = _row(u, i, d, dim, inside, T)
    total = tl.load(half, mask=d < dim, other=0.0)[None, :] * here
    weight = here
    if SUMMING:
        weight = tl.where(alone, 0.0, _row(g + base, i, d, dim, inside, T))
        sums += (b * tl.cdiv(length, SITES) + block) * (reach + 1) * dim + d
        tl.store(sums, tl.sum(tl.where(alone, 0.0, weight * here), axis=0), mask=d < dim)
    near = (m - reach < low) | (m + reach >= high)
    if tl.max(near.to(tl.int32), axis=0) == 0:
        for k in range(1, reach + 1):
            pair = _row(u, i - k * dilation, d, dim, inside, T)
            pair += _row(u, i + k * dilation, d, dim, inside, T)
            total += tl.load(half + k * dim, mask=d < dim, other=0.0)[None, :] * pair
            if SUMMING:
                tl.store(sums + k * dim, tl.sum(weight * pair, axis=0), mask=d < dim)
    else:
        left, right, fall, rise = m, m, m * 0 - 1, m * 0 + 1  # two walkers, turned at every wall
        for k in range(1, reach + 1):
            met = left + fall
            turned = (met < low) | (met >= high)
            left, fall = tl.where(turned, left, met), tl.where(turned, -fall, fall)
            met = right + rise
            turned = (met < low) | (met >= high)
            right, rise = tl.where(turned, right, met), tl.where(turned, -rise, rise)
            pair = _row(u, left * dilation + phase, d, dim, inside, T)
            pair += _row(u, right * dilation + phase, d, dim, inside, T)
            total += tl.load(half + k * dim, mask=d < dim, other=0.0)[None, :] * pair
            if SUMMING:
                found = tl.sum(tl.where(alone, 0.0, weight * pair), axis=0)
                tl.store(sums + k * dim, found, mask=d < dim)
    at = out + base + i[:, None] * dim + d[None, :]
    tl.store(at, tl.where(alone, here, total).to(out.dtype.element_ty), mask=inside)


@triton.jit
def causal(
    u, taps, edges, out,
    length, dim, reach, dilation, taps_batch, edges_batch,
    ZEROS: tl.constexpr, HAS_EDGES: tl.constexpr, SPAN: tl.constexpr,
    SITES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Filter u by taps over the past; beyond a wall stands its first site, or zeros."""
    T = taps.dtype.element_ty
    b, _, i, d = _place(length, dim, SITES, FEATURES)
    base, taps = b * length * dim, taps + b * taps_batch + d
    u, m, phase = u + base, i // dilation, i % dilation
    low, high = _piece(edges + b * edges_batch, i, m, length, dilation, HAS_EDGES, SPAN)
    inside = (i < length)[:, None] & (d < dim)[None, :]
    here = _row(u, i, d, dim, inside, T)
    total = tl.load(taps, mask=d < dim, other=0.0)[None, :] * here
    for k in range(1, reach + 1):
        seen, source = inside, tl.maximum(m - k, low)
        if ZEROS:
            seen = inside & (m - k >= low)[:, None]
        past = _row(u, source * dilation + phase, d, dim, seen, T)
        total += tl.load(taps + k * dim, mask=d < dim, other=0.0)[None, :] * past
    if not ZEROS:
        total = tl.where((high - low == 1)[:, None], here, total)
    at = out + base + i[:, None] * dim + d[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=inside)


@triton.jit
def causal_adjoint(
    g, u, taps, tails, edges, out, sums,
    length, dim, reach, dilation, taps_batch, edges_batch,
    ZEROS: tl.constexpr, HAS_EDGES: tl.constexpr, SUMMING: tl.constexpr, SPAN: tl.constexpr,
    SITES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Give each site what its future made of it; tails_k = Σ_{l ≥ k} a_l are a first site's."""
    T = taps.dtype.element_ty
    b, block, i, d = _place(length, dim, SITES, FEATURES)
    base, shift = b * length * dim, b * taps_batch + d
    g, u, taps, tails = g + base, u + base, taps + shift, tails + shift
    m, phase = i // dilation, i % dilation
    low, high = _piece(edges + b * edges_batch, i, m, length, dilation, HAS_EDGES, SPAN)
    inside = (i < length)[:, None] & (d < dim)[None, :]
    alone = (high - low == 1)[:, None]
    first = (m == low)[:, None]
    here = _row(g, i, d, dim, inside, T)
    weight = here if ZEROS else tl.where(alone, 0.0, here)
    total = tl.zeros([SITES, FEATURES], T)
    if SUMMING:
        sums += (b * tl.cdiv(length, SITES) + block) * (reach + 1) * dim + d
    for k in range(reach + 1):
        future = _row(g, i + k * dilation, d, dim, inside & (m + k < high)[:, None], T)
        a = tl.load(taps + k * dim, mask=d < dim, other=0.0)[None, :]
        if not ZEROS:
            a = tl.where(first, tl.load(tails + k * dim, mask=d < dim, other=0.0)[None, :], a)
        total += a * future
        if SUMMING:
            seen = inside
            if ZEROS:
                seen = inside & (m - k >= low)[:, None]
            past = _row(u, tl.maximum(m - k, low) * dilation + phase, d, dim, seen, T)
            found = weight * past
            if not ZEROS:
                found = tl.where(alone, 0.0, found)
            tl.store(sums + k * dim, tl.sum(found, axis=0), mask=d < dim)
    if not ZEROS:
        total = tl.where(alone, here, total)
    at = out + base + i[:, None] * dim + d[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=inside)
