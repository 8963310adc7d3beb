"""One explicit or upwind step on the CPU, and its adjoint, in any precision.

One step in flux form, with the two numbers (c, k) that make it symmetric, upwind or its adjoint:

    f_e = r (u_j − c u_i),  e = (i, j = i + δ)        u_i ← u_i + k f_{i+½} − f_{i−½}

    c = k = 1: symmetric, its own adjoint      c = 1, k = 0: upwind      c = 0, k = 1: its adjoint

Cost: the field is read once and written once (neighbouring rows come from the cache); with the
sums for the ratio's gradient a second field is read once. Sites whose edges are all open are
updated several at a time, the others one by one.
"""

from __future__ import annotations

from typing import Any

from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.lanes import (
    aligned,
    fetch,
    fma,
    get,
    load,
    minus,
    put,
    store,
    width,
)
from depthpde.operators.kernels.rows import AHEAD
from depthpde.operators.kernels.walls import open_run, row_of, sides

FLAT = 2048  # numbers in one run of open sites
WALK = 16  # sites that a register's width of features passes in one go
SYMMETRIC, UPWIND, DOWNWIND = (1, 1), (1, 0), (0, 1)


@inline
def _spread(ratio, b, copies, parts, out):  # type: ignore[no-untyped-def]
    """Write the ratio of every feature, divided, as often as sites are updated at once."""
    row = ratio[b if ratio.shape[0] > 1 else 0, 0]
    dim = out.shape[0] // copies
    for d in range(dim):
        value = (row[d] if ratio.shape[2] > 1 else row[0]) / parts
        for m in range(copies):
            out[m * dim + d] = value


@inline
def _keep(g, out, at, dim):  # type: ignore[no-untyped-def]
    """Let a site between two walls, so every padded one, keep its values."""
    lanes = width(g)
    for d in range(at, at + dim - lanes + 1, lanes):
        store(out, d, load(g, d))
    for d in range(at + dim - dim % lanes, at + dim):
        put(out, d, get(g, d))


@inline
def _ask(g, u, out, place, summing):  # type: ignore[no-untyped-def]
    """Ask for what comes soon; see `rows`."""
    fetch(g, place)
    fetch(out, place)
    if summing:
        fetch(u, place)


@inline
def _walk(g, u, out, r, brought, at, run, dim, summing):  # type: ignore[no-untyped-def]
    """Take a symmetric step, a register's width of features after the other: one load a number."""
    lanes = width(g)
    for d in range(0, dim, lanes):
        place, ratio = at + d, load(r, d)
        before, x = load(g, place - dim), load(g, place)
        total = load(brought, d) if summing else ratio
        for _ in range(run):
            _ask(g, u, out, place + AHEAD, summing)
            after = load(g, place + dim)
            change = minus(minus(after, x), minus(x, before))
            store(out, place, fma(ratio, change, x))
            if summing:
                total = fma(change, load(u, place), total)
            before, x, place = x, after, place + dim
        if summing:
            store(brought, d, total)


@inline
def _flat(g, u, out, r, brought, at, n, below, above, summing):  # type: ignore[no-untyped-def]
    """Take one step of a run as one flat array: to one side, far away, any number of features."""
    lanes = width(g)
    for t in range(0, n - lanes + 1, lanes):
        place = at + t
        _ask(g, u, out, place + AHEAD, summing)
        x = load(g, place)
        change = minus(minus(load(g, place + above), x), minus(x, load(g, place + below)))
        store(out, place, fma(load(r, t), change, x))
        if summing:
            store(brought, t, fma(change, load(u, place), load(brought, t)))
    for t in range(n - n % lanes, n):
        x = get(g, at + t)
        change = (get(g, at + t + above) - x) - (x - get(g, at + t + below))
        put(out, at + t, x + r[t] * change)
        if summing:
            brought[t] += change * get(u, at + t)


@inline
def _stream(g, u, out, r, brought, at, run, dim, below, above, near, summing):  # type: ignore[no-untyped-def]
    _flat(g, u, out, r, brought, at, run * dim, below, above, summing)


@inline
def _walk_or_stream(g, u, out, r, brought, at, run, dim, below, above, near, summing):  # type: ignore[no-untyped-def]
    if near:
        _walk(g, u, out, r, brought, at, run, dim, summing)
    else:
        _flat(g, u, out, r, brought, at, run * dim, below, above, summing)


def _make(name: str, pass_open: Any, walks: bool) -> Any:
    """Make the kernel that takes one step, given how it passes runs of sites with open edges.

        g ← g + rMg,  and if `partial` is not empty,  partial ← Σ_i (Mg)_i u_i  over each tile

    The ratio is the same at every edge of a sequence: [batch | 1, 1, dim | 1].
    """

    def step(  # type: ignore[no-untyped-def]
        g, u, ratio, edges, out, partial, shape, dilation, periodic, c, k, tile, first, last
    ):
        _, length, dim = shape
        tiles, summing = (length + tile - 1) // tile, partial.shape[0] > 0
        near = walks and c == k and dilation == 1 and dim % width(g) == 0
        longest = max(1, min(WALK, FLAT // dim) if near else FLAT // dim)
        # A step to one side is the symmetric one with the same neighbour twice and half the ratio:
        # r/2 ((y − x) − (x − y)) = r (y − x), to the bit.
        one, away = max(c, k), dilation * dim
        twice = one if c == k else one + one
        below, above = -away if c == 1 else away, away if k == 1 else -away
        r = aligned(longest * dim, ratio)
        brought = aligned(longest * dim if summing else 0, ratio)
        for task in range(first, last):
            b, start = task // tiles, (task % tiles) * tile
            stop, row, base = min(length, start + tile), row_of(edges, b), b * length * dim
            if task == first or task % tiles == 0:
                _spread(ratio, b, longest, twice, r)
            brought[:] = 0
            i = start
            while i < stop:
                # sites at walls are one by one; no index is computed for the others
                run, at = open_run(i, stop, longest, length, dilation, edges, row), base + i * dim
                if run > 0:
                    pass_open(g, u, out, r, brought, at, run, dim, below, above, near, summing)
                else:
                    low, high, left, right = sides(i, length, dilation, periodic, edges, row)
                    if not (left or right):
                        _keep(g, out, at, dim)
                        i += 1
                        continue
                    for d in range(dim):
                        x = get(g, at + d)
                        # beyond a wall may be no number: it is not even multiplied by zero
                        gain = get(g, base + high * dim + d) - c * x if right and k == 1 else c * 0
                        other = get(g, base + low * dim + d) if left and c == 1 else c * 0
                        change = twice * (gain - (x - other if left else c * 0))
                        put(out, at + d, x + r[d] * change)
                        if summing:
                            brought[d] += change * get(u, at + d)
                i += max(run, 1)
            if summing:
                sums = partial[task]
                sums[:] = 0
                for m in range(longest):
                    for d in range(dim):
                        sums[d] += brought[m * dim + d] / twice

    step.__name__ = step.__qualname__ = name
    return kernel(step)


step = _make("step", _stream, walks=False)
"""One straight stream: as fast as memory where nothing is converted."""
step_converted = _make("step_converted", _walk_or_stream, walks=True)
"""Each number is converted once, for 16 bits. Apart from the other, for each takes a second or two
to compile."""
