"""One explicit or upwind step on the CPU, and its adjoint, in any precision.

One step in flux form, with the two numbers (c, k) that make it symmetric, upwind or its adjoint:

    f_e = r (u_j − c u_i),  e = (i, j = i + δ)        u_i ← u_i + k f_{i+½} − f_{i−½}

    c = k = 1: symmetric, its own adjoint      c = 1, k = 0: upwind      c = 0, k = 1: its adjoint

Cost: the field is read once and written once (neighbouring rows come from the cache); with the
sums for the ratio's gradient a second field is read once. Sites whose edges are all open are
updated several at a time as one flat array, the others one by one.
"""

from __future__ import annotations

from depthpde.operators.diffusion.kernels.compilation import inline, kernel
from depthpde.operators.diffusion.kernels.lanes import (
    aligned,
    fma,
    get,
    load,
    minus,
    put,
    store,
    width,
)
from depthpde.operators.diffusion.kernels.walls import open_run, row_of, sides

FLAT = 1024  # numbers in one flat run
SYMMETRIC, UPWIND, DOWNWIND = (1, 1), (1, 0), (0, 1)


@kernel
def step(  # type: ignore[no-untyped-def]
    g, u, ratio, edges, out, partial, shape, dilation, periodic, c, k, tile, first, last
):
    """Take one step g ← g + rMg; if `partial` is not empty, also sum (Mg)_i u_i over each tile.

    The ratio is the same at every edge of a sequence: [batch | 1, 1, dim | 1].
    """
    _, length, dim = shape
    tiles = (length + tile - 1) // tile
    longest = max(1, FLAT // dim)
    summing = partial.shape[0] > 0
    r = aligned(longest * dim, ratio)
    brought = aligned(longest * dim if summing else 0, ratio)
    for task in range(first, last):
        b, start = task // tiles, (task % tiles) * tile
        stop, row, base = min(length, start + tile), row_of(edges, b), b * length * dim
        if task == first or task % tiles == 0:
            _spread(ratio, b, longest, r)
        brought[:] = 0
        i = start
        while i < stop:
            # Sites between walls are one by one; those without are one flat array, in which the
            # neighbour is `shift` numbers away and no index is computed for a site.
            run = open_run(i, stop, longest, length, dilation, edges, row)
            if run > 0:
                at, n, shift = base + i * dim, run * dim, dilation * dim
                if summing:
                    _sum_run(g, u, out, r, brought, at, n, shift, c, k)
                else:
                    _run(g, out, r, at, n, shift, c, k)
                i += run
                continue
            below, above, left, right = sides(i, length, dilation, periodic, edges, row)
            at = base + i * dim
            for d in range(dim):
                x = get(g, at + d)
                # what stands beyond a wall may be no number: it is not even multiplied by zero
                gain = get(g, base + above * dim + d) - c * x if right and k == 1 else c * 0
                loss = x - (get(g, base + below * dim + d) if c == 1 else c * 0) if left else c * 0
                put(out, at + d, x + r[d] * (gain - loss))
                if summing and (left or right):
                    brought[d] += (gain - loss) * get(u, at + d)
            i += 1
        if summing:
            sums = partial[task]
            sums[:] = 0
            for m in range(longest):
                for d in range(dim):
                    sums[d] += brought[m * dim + d]


@inline
def _spread(ratio, b, copies, out):  # type: ignore[no-untyped-def]
    """Write the ratio of every feature, as often as sites are updated at once."""
    row = ratio[b if ratio.shape[0] > 1 else 0, 0]
    dim = out.shape[0] // copies
    for d in range(dim):
        value = row[d] if ratio.shape[2] > 1 else row[0]
        for m in range(copies):
            out[m * dim + d] = value


@inline
def _run(g, out, r, at, n, shift, c, k):  # type: ignore[no-untyped-def]
    """Take one step of a flat run."""
    lanes = width(g)
    if c == 1 and k == 1:
        for t in range(0, n - lanes + 1, lanes):
            x, place = load(g, at + t), at + t
            change = minus(minus(load(g, place + shift), x), minus(x, load(g, place - shift)))
            store(out, place, fma(load(r, t), change, x))
    else:
        other = at - shift if k == 0 else at + shift
        for t in range(0, n - lanes + 1, lanes):
            x = load(g, at + t)
            store(out, at + t, fma(load(r, t), minus(load(g, other + t), x), x))
    for t in range(n - n % lanes, n):
        x = get(g, at + t)
        put(out, at + t, x + r[t] * _change(g, at + t, shift, x, c, k))


@inline
def _sum_run(g, u, out, r, brought, at, n, shift, c, k):  # type: ignore[no-untyped-def]
    """Take one step of a flat run, and add what the step brings, times the field, to the sums."""
    lanes = width(g)
    if c == 1 and k == 1:
        for t in range(0, n - lanes + 1, lanes):
            x, place = load(g, at + t), at + t
            change = minus(minus(load(g, place + shift), x), minus(x, load(g, place - shift)))
            store(out, place, fma(load(r, t), change, x))
            store(brought, t, fma(change, load(u, place), load(brought, t)))
    else:
        other = at - shift if k == 0 else at + shift
        for t in range(0, n - lanes + 1, lanes):
            x = load(g, at + t)
            change = minus(load(g, other + t), x)
            store(out, at + t, fma(load(r, t), change, x))
            store(brought, t, fma(change, load(u, at + t), load(brought, t)))
    for t in range(n - n % lanes, n):
        x = get(g, at + t)
        change = _change(g, at + t, shift, x, c, k)
        put(out, at + t, x + r[t] * change)
        brought[t] += change * get(u, at + t)


@inline
def _change(g, at, shift, x, c, k):  # type: ignore[no-untyped-def]
    """Give (Mg) of one number whose edges are all open."""
    if c == 1 and k == 1:
        return (get(g, at + shift) - x) - (x - get(g, at - shift))
    return get(g, at - shift if k == 0 else at + shift) - x
