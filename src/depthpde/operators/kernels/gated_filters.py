"""Several filters of one field, mixed by weights of every site, on the CPU.

    y_i = u_i + Σ_s w_{i,s} (F_s u − u)_i        ∂w_{i,s} = Σ_d g_i (F_s u − u)_i

F_s is a filter of `filters`, centred on the same site as the others: 2·reach + 1 taps, or reach + 1
of the past. Written with differences, filters that change nothing leave u as it is, to the bit.

Cost: as `filters`: a tile is brought into a window in the first cache once for all scales, whose
results are mixed there before the store. One read and one write of the field, and the weights.
"""

from __future__ import annotations

from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.filters import (
    NOTHING,
    SITES,
    TILE,
    WRAP,
    fill,
    filter_tile,
    keep,
    take_taps,
)
from depthpde.operators.kernels.lanes import (
    aligned,
    fma,
    get,
    load,
    minus,
    put,
    spread,
    store,
    times,
    total,
    width,
)
from depthpde.operators.kernels.walls import piece, row_of


@inline
def _lay_out(taps, dim):  # type: ignore[no-untyped-def]
    """Lay out the taps of every scale by columns of a register's width, one after the other."""
    scales, num_taps = taps.shape[0], taps.shape[1]
    size = num_taps * (dim + width(taps))
    mine = aligned(scales * size, taps)
    for s in range(scales):
        take_taps(taps, s, dim, False, mine[s * size : (s + 1) * size])
    return mine


@inline
def _filtered(window, s, taps, reaches, mine, d, dim, past, n, one, spare):  # type: ignore[no-untyped-def]
    """Filter n sites of a window by scale s into `one`."""
    num_taps, w = taps.shape[1], width(taps)
    skip = past - reaches[s]
    count = num_taps - (skip if past == num_taps - 1 else 2 * skip)
    first = s * num_taps * (dim + w) + d * num_taps + skip * w
    filter_tile(window, skip, mine, first, count, n, one, 0, w, w, spare)


@kernel
def apply_gated(  # type: ignore[no-untyped-def]
    u, taps, reaches, weights, edges, out, shape, past, kind, chunk, first, last
):
    """Mix all scales; taps: [scales, taps, dim], weights: [batch · length · scales], flat."""
    _, length, dim = shape
    scales, num_taps, w = taps.shape[0], taps.shape[1], width(taps)
    chunks, future = (length + chunk - 1) // chunk, num_taps - 1 - past
    window, spare = aligned((TILE + num_taps + SITES) * w, taps), aligned(SITES * w, taps)
    mine, one, mixed = _lay_out(taps, dim), aligned(TILE * w, taps), aligned(TILE * w, taps)
    for task in range(first, last):
        b, i = task // chunks, task % chunks * chunk
        stop, row, base = min(length, i + chunk), row_of(edges, b), b * length * dim
        while i < stop:
            low, high = piece(i, num_taps, TILE + num_taps, length, edges, row, kind == WRAP)
            n = min(stop, high, i + TILE) - i
            if high - low == 1 and kind != NOTHING:
                keep(u, out, base + i * dim, dim)
                i += 1
                continue
            for d in range(0, dim, w):
                count, at = min(w, dim - d), base + i * dim + d
                fill(window, u, base + d, dim, count, i, n, past, future, low, high, kind)
                mixed[: n * w] = window[past * w : (past + n) * w]
                for s in range(scales):
                    _filtered(window, s, taps, reaches, mine, d, dim, past, n, one, spare)
                    for m in range(n):
                        gap = minus(load(one, m * w), load(window, (past + m) * w))
                        share = spread(taps, weights[(b * length + i + m) * scales + s])
                        store(mixed, m * w, fma(share, gap, load(mixed, m * w)))
                for m in range(n):
                    if count == w:
                        store(out, at + m * dim, load(mixed, m * w))
                    else:
                        for k in range(count):
                            put(out, at + m * dim + k, mixed[m * w + k])
            i += n


@kernel
def gate_gradient(  # type: ignore[no-untyped-def]
    g, u, taps, reaches, edges, out, shape, past, kind, chunk, first, last
):
    """Give ∂w, [batch · length · scales], flat; sites between two walls have none."""
    _, length, dim = shape
    scales, num_taps, w = taps.shape[0], taps.shape[1], width(taps)
    chunks, future = (length + chunk - 1) // chunk, num_taps - 1 - past
    window, spare = aligned((TILE + num_taps + SITES) * w, taps), aligned(SITES * w, taps)
    mine, one = _lay_out(taps, dim), aligned(TILE * w, taps)
    for task in range(first, last):
        b, i = task // chunks, task % chunks * chunk
        stop, row, base = min(length, i + chunk), row_of(edges, b), b * length * dim
        out[(b * length + i) * scales : (b * length + stop) * scales] = 0
        while i < stop:
            low, high = piece(i, num_taps, TILE + num_taps, length, edges, row, kind == WRAP)
            n = min(stop, high, i + TILE) - i
            if high - low == 1 and kind != NOTHING:
                i += 1
                continue
            for d in range(0, dim, w):
                count, at = min(w, dim - d), base + i * dim + d
                fill(window, u, base + d, dim, count, i, n, past, future, low, high, kind)
                for s in range(scales):
                    _filtered(window, s, taps, reaches, mine, d, dim, past, n, one, spare)
                    for m in range(n):
                        here, to = (past + m) * w, (b * length + i + m) * scales + s
                        if count == w:
                            gap = minus(load(one, m * w), load(window, here))
                            out[to] += total(times(load(g, at + m * dim), gap))
                        else:
                            for k in range(count):
                                gap_k = one[m * w + k] - window[here + k]
                                out[to] += get(g, at + m * dim + k) * gap_k
            i += n
