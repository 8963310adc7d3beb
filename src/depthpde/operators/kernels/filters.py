"""A filter along the sequence on the CPU, its adjoint and the gradient of its taps.

    y_i = Σ_k a_k (Eu)_{i+k−p}        k = 0 … K − 1,  p taps look at the past

E continues every piece beyond its walls, each site beyond being a copy of one within:

    REFLECT   … u_1 u_0 | u_0 u_1 …   at any distance (period 2n): no-flux walls for symmetric taps
    REPEAT    … u_0 u_0 | u_0 u_1 …   the first site stands for all before it: causal taps
    WRAP      … u_{n−2} u_{n−1} | u_0 u_1 …   periodic
    NOTHING   … 0 0 | u_0 u_1 …   zeros, as a convolution has them

Adjoint: z = Eᵀ Fᵀ g gathers, for each site, the flipped filter at all of its copies; away from
walls that is the flipped filter alone, and for symmetric taps under REFLECT (or WRAP) the filter
itself. Gradient of the taps: ∂a_k = Σ_i g_i (Eu)_{i+k−p}.

Cost: a tile of sites is brought, one register's width of features at a time, into a window in the
first cache, continued there beyond its walls and converted from its storage; each tap is then
loaded once for eight sites. So memory is read once and written once whatever the number of taps:
K multiplications a number forward, 2K backward.
"""

from __future__ import annotations

from depthpde.operators.kernels.compilation import inline, kernel, part
from depthpde.operators.kernels.lanes import (
    aligned,
    fma,
    get,
    load,
    put,
    store,
    width,
    zeros,
)
from depthpde.operators.kernels.walls import piece, row_of

TILE = 128  # sites in one window
SITES = 8  # sites that share one load of a tap
GROUP = 11  # taps whose gradients are summed together in registers: 16 steps have 3 × 11
REFLECT, REPEAT, WRAP, NOTHING = 0, 1, 2, 3


@inline
def source_of(j, low, high, kind):  # type: ignore[no-untyped-def]
    """Give the site of the piece [low, high) of which site j, within or beyond it, is a copy."""
    if low <= j < high:
        return j
    n = high - low
    if kind == WRAP:
        return low + (j - low) % n
    if kind == REPEAT:
        return low if j < low else high - 1
    j = (j - low) % (2 * n)
    return low + (j if j < n else 2 * n - 1 - j)


@part
def fill(window, u, base, dim, count, i, n, before, after, low, high, kind):  # type: ignore[no-untyped-def]
    """Bring sites i − before … i + n + after into the window, continued beyond the walls."""
    w, start, stop = width(window), i - before, i + n + after
    inside, beyond = max(low, start), min(high, stop)
    if count == w:
        at, to = base + inside * dim, (inside - start) * w
        for _ in range(beyond - inside):
            store(window, to, load(u, at))
            at, to = at + dim, to + w
    else:
        for j in range(inside, beyond):
            for d in range(count):
                window[(j - start) * w + d] = get(u, base + j * dim + d)
    for j in range(start, inside):
        _copy(window, (j - start) * w, u, base, dim, count, j, low, high, kind)
    for j in range(beyond, stop):
        _copy(window, (j - start) * w, u, base, dim, count, j, low, high, kind)


@inline
def _copy(window, to, u, base, dim, count, j, low, high, kind):  # type: ignore[no-untyped-def]
    """Write the copy that stands at site j, beyond a wall."""
    at = base + source_of(j, low, high, kind) * dim
    for d in range(count):
        window[to + d] = 0 if kind == NOTHING else get(u, at + d)


@inline
def take_taps(taps, b, dim, flipped, out):  # type: ignore[no-untyped-def]
    """Lay the taps out by columns of a register's width, in reverse order for the adjoint."""
    lanes, row, num_taps = width(taps), b if taps.shape[0] > 1 else 0, taps.shape[1]
    for k in range(num_taps):
        source = taps[row, num_taps - 1 - k if flipped else k]
        for d in range(dim):
            out[(d // lanes * num_taps + k) * lanes + d % lanes] = source[d]


@part
def filter_tile(window, skip, taps, tap, num_taps, n, out, at, dim, count, spare):  # type: ignore[no-untyped-def]
    """Filter n sites of a window, eight at a time, and store the first `count` features.

    The first tap of the first site stands at row `skip` of the window.
    """
    w = width(window)
    for i in range(0, n, SITES):
        place = (i + skip) * w
        y0, y1, y2, y3 = zeros(window), zeros(window), zeros(window), zeros(window)
        y4, y5, y6, y7 = zeros(window), zeros(window), zeros(window), zeros(window)
        for k in range(num_taps):
            a = load(taps, tap + k * w)
            y0 = fma(a, load(window, place), y0)
            y1 = fma(a, load(window, place + w), y1)
            y2 = fma(a, load(window, place + 2 * w), y2)
            y3 = fma(a, load(window, place + 3 * w), y3)
            y4 = fma(a, load(window, place + 4 * w), y4)
            y5 = fma(a, load(window, place + 5 * w), y5)
            y6 = fma(a, load(window, place + 6 * w), y6)
            y7 = fma(a, load(window, place + 7 * w), y7)
            place += w
        to = at + i * dim
        if i + SITES <= n and count == w:
            store(out, to, y0)
            store(out, to + dim, y1)
            store(out, to + 2 * dim, y2)
            store(out, to + 3 * dim, y3)
            store(out, to + 4 * dim, y4)
            store(out, to + 5 * dim, y5)
            store(out, to + 6 * dim, y6)
            store(out, to + 7 * dim, y7)
            continue
        store(spare, 0, y0)
        store(spare, w, y1)
        store(spare, 2 * w, y2)
        store(spare, 3 * w, y3)
        store(spare, 4 * w, y4)
        store(spare, 5 * w, y5)
        store(spare, 6 * w, y6)
        store(spare, 7 * w, y7)
        for m in range(min(SITES, n - i)):
            for d in range(count):
                put(out, to + m * dim + d, spare[m * w + d])


@part
def correlate(window, center, field, skip, num_taps, n, sums, first):  # type: ignore[no-untyped-def]
    """Add Σ_i g_i x_{i+k} to the sums of every tap: g from row `center` of one window on.

    The first tap of the first site stands at row `skip` of the field.
    """
    w = width(window)
    for k in range(0, num_taps, GROUP):
        to, place, here = first + k * w, (skip + k) * w, center * w
        s0, s1, s2 = load(sums, to), load(sums, to + w), load(sums, to + 2 * w)
        s3, s4, s5 = load(sums, to + 3 * w), load(sums, to + 4 * w), load(sums, to + 5 * w)
        s6, s7, s8 = load(sums, to + 6 * w), load(sums, to + 7 * w), load(sums, to + 8 * w)
        s9, sa = load(sums, to + 9 * w), load(sums, to + 10 * w)
        for _ in range(n):
            g = load(window, here)
            s0 = fma(g, load(field, place), s0)
            s1 = fma(g, load(field, place + w), s1)
            s2 = fma(g, load(field, place + 2 * w), s2)
            s3 = fma(g, load(field, place + 3 * w), s3)
            s4 = fma(g, load(field, place + 4 * w), s4)
            s5 = fma(g, load(field, place + 5 * w), s5)
            s6 = fma(g, load(field, place + 6 * w), s6)
            s7 = fma(g, load(field, place + 7 * w), s7)
            s8 = fma(g, load(field, place + 8 * w), s8)
            s9 = fma(g, load(field, place + 9 * w), s9)
            sa = fma(g, load(field, place + 10 * w), sa)
            place, here = place + w, here + w
        store(sums, to, s0)
        store(sums, to + w, s1)
        store(sums, to + 2 * w, s2)
        store(sums, to + 3 * w, s3)
        store(sums, to + 4 * w, s4)
        store(sums, to + 5 * w, s5)
        store(sums, to + 6 * w, s6)
        store(sums, to + 7 * w, s7)
        store(sums, to + 8 * w, s8)
        store(sums, to + 9 * w, s9)
        store(sums, to + 10 * w, sa)


@inline
def keep(u, out, at, dim):  # type: ignore[no-untyped-def]
    """Let a site between two walls keep its value, whatever it is."""
    for d in range(at, at + dim):
        put(out, d, get(u, d))


@inline
def _gather(g, taps, out, base, dim, j, low, high, past, kind, line):  # type: ignore[no-untyped-def]
    """Sum the flipped filter of g at site j and at all of its copies beyond the walls."""
    line[:] = 0
    _add_copy(g, taps, base, dim, j, low, high, past, line)
    for e in range(low - past, low):
        if source_of(e, low, high, kind) == j:
            _add_copy(g, taps, base, dim, e, low, high, past, line)
    for e in range(high, high + taps.shape[0] - 1 - past):
        if source_of(e, low, high, kind) == j:
            _add_copy(g, taps, base, dim, e, low, high, past, line)
    for d in range(dim):
        put(out, base + j * dim + d, line[d])


@inline
def _add_copy(g, taps, base, dim, e, low, high, past, line):  # type: ignore[no-untyped-def]
    """Add Σ_i a_{e−i+p} g_i, over the sites i of the piece."""
    for i in range(max(low, e + past - taps.shape[0] + 1), min(high, e + past + 1)):
        tap, at = taps[e - i + past], base + i * dim
        for d in range(dim):
            line[d] += tap[d] * get(g, at + d)


@kernel
def apply_filter(u, taps, edges, out, shape, past, kind, chunk, first, last):  # type: ignore[no-untyped-def]
    """Filter a field; a task is one chunk of the sites of a sequence."""
    _, length, dim = shape
    num_taps, w = taps.shape[1], width(taps)
    chunks, future = (length + chunk - 1) // chunk, num_taps - 1 - past
    # A window is a tile, its halo of num_taps − 1 sites, and room for the last group of SITES,
    # computed whole even where fewer are left. The halo is read again by the next tile, so that no
    # tile waits for another and no bit depends on how many threads there are.
    window, spare = aligned((TILE + num_taps + SITES) * w, taps), aligned(SITES * w, taps)
    mine = aligned(num_taps * (dim + w), taps)
    for task in range(first, last):
        b, i = task // chunks, task % chunks * chunk
        stop, row, base = min(length, i + chunk), row_of(edges, b), b * length * dim
        if task == first or taps.shape[0] > 1:
            take_taps(taps, b, dim, False, mine)
        while i < stop:
            low, high = piece(i, num_taps, TILE + num_taps, length, edges, row, kind == WRAP)
            n = min(stop, high, i + TILE) - i
            if high - low == 1 and kind != NOTHING:  # all taps see it: kept exactly, NaN included
                keep(u, out, base + i * dim, dim)
                i += 1
                continue
            for d in range(0, dim, w):
                count, at = min(w, dim - d), base + i * dim + d
                fill(window, u, base + d, dim, count, i, n, past, future, low, high, kind)
                filter_tile(window, 0, mine, d * num_taps, num_taps, n, out, at, dim, count, spare)
            i += n


@kernel
def filter_adjoint(  # type: ignore[no-untyped-def]
    g, u, taps, edges, out, partial, shape, past, kind, mirrored, chunk, first, last
):
    """Give Eᵀ Fᵀ g and, unless `partial` is empty, the taps' gradient summed over each chunk.

    `mirrored` says that the taps are symmetric and the walls reflect: the filter is its own
    adjoint. Else the flipped filter is right away from walls, and sites near one are gathered.
    """
    _, length, dim = shape
    num_taps, w = taps.shape[1], width(taps)
    chunks, future = (length + chunk - 1) // chunk, num_taps - 1 - past
    groups = (num_taps + GROUP - 1) // GROUP * GROUP
    before, after = (past, future) if mirrored else (future, past)
    rows = (TILE + groups + SITES) * w
    window, field, spare = aligned(rows, taps), aligned(rows, taps), aligned(SITES * w, taps)
    mine, line = aligned(num_taps * (dim + w), taps), aligned(dim, taps)
    summing = partial.shape[0] > 0
    sums = aligned(groups * (dim + w) if summing else 0, taps)
    continued = kind if mirrored or kind == WRAP else NOTHING
    for task in range(first, last):
        b, i = task // chunks, task % chunks * chunk
        stop, row, base = min(length, i + chunk), row_of(edges, b), b * length * dim
        own = taps[b if taps.shape[0] > 1 else 0]
        if task == first or taps.shape[0] > 1:
            take_taps(taps, b, dim, not mirrored, mine)
        sums[:] = 0
        while i < stop:
            low, high = piece(i, num_taps, TILE + num_taps, length, edges, row, kind == WRAP)
            n = min(stop, high, i + TILE) - i
            if high - low == 1 and kind != NOTHING:
                keep(g, out, base + i * dim, dim)
                i += 1
                continue
            for d in range(0, dim, w):
                count, at = min(w, dim - d), base + i * dim + d
                fill(window, g, base + d, dim, count, i, n, before, after, low, high, continued)
                filter_tile(window, 0, mine, d * num_taps, num_taps, n, out, at, dim, count, spare)
                if summing:
                    fill(field, u, base + d, dim, count, i, n, past, future, low, high, kind)
                    correlate(window, before, field, 0, num_taps, n, sums, d * groups)
            if continued == NOTHING and kind != NOTHING:
                for j in range(i, i + n):
                    if j < low + num_taps or j >= high - num_taps:
                        _gather(g, own, out, base, dim, j, low, high, past, kind, line)
            i += n
        if summing:
            for k in range(num_taps):
                for d in range(dim):
                    partial[task, k, d] = sums[(d // w * groups + k) * w + d % w]
