"""Several filters of one field, mixed by weights of every site, on the CPU.

    y_i = u_i + Σ_s w_{i,s} (F_s u − u)_i        ∂w_{i,s} = Σ_d g_i (F_s u − u)_i

F_s is a filter of `filters`, centred on the same site as the others: 2·reach + 1 taps, or reach + 1
of the past. Written with differences, filters that change nothing leave u as it is, to the bit.

Cost: as `filters`: a tile is brought into a window in the first cache once for all scales, whose
results are mixed there before the store. One read and one write of the field, and the weights;
backward two reads and one write, and the weights both ways.
"""

from __future__ import annotations

from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.filters import (
    GROUP,
    NOTHING,
    REPEAT,
    SITES,
    TILE,
    WRAP,
    correlate,
    fill,
    filter_tile,
    keep,
    source_of,
    take_taps,
)
from depthpde.operators.kernels.lanes import (
    aligned,
    fma,
    load,
    minus,
    plus,
    put,
    spread,
    store,
    times,
    total,
    width,
)
from depthpde.operators.kernels.walls import piece, row_of


@inline
def _lay_out(taps, dim, flipped):  # type: ignore[no-untyped-def]
    """Lay out the taps of every scale by columns of a register's width, one after the other."""
    scales, num_taps = taps.shape[0], taps.shape[1]
    size = num_taps * (dim + width(taps))
    mine = aligned(scales * size, taps)
    for s in range(scales):
        take_taps(taps, s, dim, flipped, mine[s * size : (s + 1) * size])
    return mine


@inline
def _span(s, num_taps, reaches, past):  # type: ignore[no-untyped-def]
    """Give the first tap of scale s behind its outer zeros, and how many taps it has."""
    skip = past - reaches[s]
    return skip, num_taps - (skip if past == num_taps - 1 else 2 * skip)


@inline
def _put_rows(rows, n, out, at, dim, count):  # type: ignore[no-untyped-def]
    """Store the first `count` features of n sites."""
    w = width(rows)
    for m in range(n):
        if count == w:
            store(out, at + m * dim, load(rows, m * w))
        else:
            for k in range(count):
                put(out, at + m * dim + k, rows[m * w + k])


@kernel
def apply_gated(  # type: ignore[no-untyped-def]
    u, taps, reaches, weights, edges, out, shape, past, kind, chunk, first, last
):
    """Mix all scales; taps: [scales, taps, dim], weights: [batch · length · scales], flat."""
    _, length, dim = shape
    scales, num_taps, w = taps.shape[0], taps.shape[1], width(taps)
    chunks, future = (length + chunk - 1) // chunk, num_taps - 1 - past
    window, spare = aligned((TILE + num_taps + SITES) * w, taps), aligned(SITES * w, taps)
    one, mixed, mine = aligned(TILE * w, taps), aligned(TILE * w, taps), _lay_out(taps, dim, False)
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
                    skip, reach = _span(s, num_taps, reaches, past)
                    tap = s * num_taps * (dim + w) + d * num_taps + skip * w
                    filter_tile(window, skip, mine, tap, reach, n, one, 0, w, w, spare)
                    for m in range(n):
                        gap = minus(load(one, m * w), load(window, (past + m) * w))
                        share = spread(taps, weights[(b * length + i + m) * scales + s])
                        store(mixed, m * w, fma(share, gap, load(mixed, m * w)))
                _put_rows(mixed, n, out, at, dim, count)
            i += n


@inline
def _take_shares(weights, s, scales, start, rows, low, high, kind, shares):  # type: ignore[no-untyped-def]
    """Bring the weights of scale s at `rows` sites from `start` on, continued as g is."""
    for j in range(start, start + rows):
        if kind == NOTHING and not low <= j < high:
            shares[j - start] = 0
        else:
            shares[j - start] = weights[source_of(j, low, high, kind) * scales + s]


@inline
def _add_first(scaled, taps, tap, skip, past, mixed):  # type: ignore[no-untyped-def]
    """Add to the first site of a piece what its copies before the wall were read for.

    Σ_m (w g)_m Σ_{t < past − m} a_t        causal taps, m sites behind the first
    """
    w, found = width(scaled), load(mixed, 0)
    for m in range(past):
        row = load(scaled, m * w)
        for t in range(skip, past - m):
            found = fma(load(taps, tap + t * w), row, found)
    store(mixed, 0, found)


@kernel
def gated_adjoint(  # type: ignore[no-untyped-def]
    g, u, taps, reaches, weights, edges, out, of_weights, partial, shape, past, kind, chunk,
    first, last,
):  # fmt: skip
    """Give ∂u, ∂w and, summed over each chunk, ∂a; a site between two walls has the first alone.

        ∂u = g + Σ_s (F_sᵀ − 1) w_s g        ∂a_{s,k} = Σ_i w_{i,s} g_i (Eu)_{i+k−p}

    Centred taps are symmetric, so that F_s is its own adjoint; causal ones are flipped, and the
    first site of a piece is read for its copies too. Filters' adjoints see w_s g, made in the
    window. One read of g and u, one write of ∂u: three passes over memory at any number of scales.
    """
    _, length, dim = shape
    scales, num_taps, w = taps.shape[0], taps.shape[1], width(taps)
    chunks, future = (length + chunk - 1) // chunk, num_taps - 1 - past
    causal, size = future == 0, num_taps * (dim + w)
    before, after = (future, past) if causal else (past, future)
    continued = NOTHING if kind == REPEAT else kind
    groups = (num_taps + GROUP - 1) // GROUP * GROUP
    rows = (TILE + num_taps + GROUP + SITES) * w
    field, window, scaled = aligned(rows, taps), aligned(rows, taps), aligned(rows, taps)
    one, mixed, spare = aligned(TILE * w, taps), aligned(TILE * w, taps), aligned(SITES * w, taps)
    shares, sums = aligned(scales * rows, taps), aligned(scales * groups * (dim + w), taps)
    mine, flipped = _lay_out(taps, dim, False), _lay_out(taps, dim, causal)
    for task in range(first, last):
        b, i = task // chunks, task % chunks * chunk
        stop, row, base = min(length, i + chunk), row_of(edges, b), b * length * dim
        own = weights[b * length * scales : (b + 1) * length * scales]
        of_weights[(b * length + i) * scales : (b * length + stop) * scales] = 0
        sums[:] = 0
        while i < stop:
            low, high = piece(i, num_taps, TILE + num_taps, length, edges, row, kind == WRAP)
            n = min(stop, high, i + TILE) - i
            if high - low == 1 and kind != NOTHING:
                keep(g, out, base + i * dim, dim)
                i += 1
                continue
            many = n + before + after
            for s in range(scales):
                mine_s = shares[s * rows : (s + 1) * rows]
                _take_shares(own, s, scales, i - before, many, low, high, continued, mine_s)
            for d in range(0, dim, w):
                count, at = min(w, dim - d), base + i * dim + d
                if count < w:  # sums over a register's numbers must not see the columns before
                    field[:] = window[:] = 0
                fill(field, u, base + d, dim, count, i, n, past, future, low, high, kind)
                fill(window, g, base + d, dim, count, i, n, before, after, low, high, continued)
                mixed[: n * w] = window[before * w : (before + n) * w]
                for s in range(scales):
                    skip, reach = _span(s, num_taps, reaches, past)
                    tap = s * size + d * num_taps
                    filter_tile(field, skip, mine, tap + skip * w, reach, n, one, 0, w, w, spare)
                    for m in range(n):
                        gap = minus(load(one, m * w), load(field, (past + m) * w))
                        to = (b * length + i + m) * scales + s
                        slope = load(window, (before + m) * w)
                        of_weights[to] += total(times(slope, gap))
                    for j in range(many):
                        share = spread(taps, shares[s * rows + j])
                        store(scaled, j * w, times(share, load(window, j * w)))
                    back = num_taps - skip - reach if causal else skip
                    filter_tile(
                        scaled, back, flipped, tap + back * w, reach, n, one, 0, w, w, spare
                    )
                    for m in range(n):
                        gap = minus(load(one, m * w), load(scaled, (before + m) * w))
                        store(mixed, m * w, plus(load(mixed, m * w), gap))
                    if kind == REPEAT and i <= low:
                        _add_first(scaled, mine, tap, skip, past, mixed)
                    to = s * groups * (dim + w) + d * groups
                    correlate(scaled, before, field, skip, reach, n, sums, to)
                _put_rows(mixed, n, out, at, dim, count)
            i += n
        for s in range(scales):
            skip, reach = _span(s, num_taps, reaches, past)
            for k in range(num_taps):
                for d in range(dim):
                    place = (d // w * groups + k - skip) * w + d % w
                    inside = skip <= k < skip + reach
                    partial[task, s, k, d] = sums[s * groups * (dim + w) + place] if inside else 0
