"""Softmax attention of one head at a time, and its adjoint; `fused_attention` has the formulas.

A task is one head of one sequence. It takes as many queries as two registers have lanes, so that
maxima, sums and exponentials need no step across lanes, and a few keys at a time, so that what it
works on stays in the first level of cache; every product is one small kernel whose sums stay in
registers (`tiles`). With a head of 16 on one core with AVX-512, data in its own cache: 106 GFLOP/s
forward and 129 backward, where a product of large matrices reaches 162. Maximum and sum of a query
are those of the keys so far; what was summed before is scaled when the maximum grows. Keys that are
padding are not gathered, so they cost nothing.
"""

from __future__ import annotations

import numpy as np

from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.lanes import (
    FLOATS,
    aligned,
    exp2,
    fetch,
    fma,
    largest,
    load,
    minus,
    over,
    plus,
    put,
    spread,
    store,
    times,
    total,
    width,
    zeros,
)
from depthpde.operators.kernels.tiles import (
    LINES,
    ROWS,
    add_product,
    exp2_tile,
    largest_row,
    load_tile,
    same_rows,
    store_tile,
    times_tile,
    turned,
)

CHUNK = 64
"""Keys whose scores stay in the first level of cache, with what multiplies them."""


@inline
def _seen_keys(seen, b, keys, index):  # type: ignore[no-untyped-def]
    """List the keys that are seen; return how many."""
    if seen.shape[0] == 0:
        for j in range(keys):
            index[j] = j
        return keys
    count = 0
    for j in range(keys):
        if seen[b, j]:
            index[count] = j
            count += 1
    return count


@inline
def _gather(u, base, step, index, count, dim, out):  # type: ignore[no-untyped-def]
    """Copy rows of one head side by side, and zeros up to a whole group of four."""
    n = width(u)
    for j in range(count):
        at = base + index[j] * step
        for d in range(0, dim, n):
            store(out, j * dim + d, load(u, at + d))
    for e in range(count * dim, (count + ROWS - 1) // ROWS * ROWS * dim, n):
        store(out, e, zeros(out))


@inline
def _turn(near, dim, gain, columns):  # type: ignore[no-untyped-def]
    """Write the rows of a tile as columns, times a number: one lane a row."""
    n = width(near)
    for r in range(0, 2 * n, n):
        for d in range(0, dim, n):
            block = turned(load_tile(near, r * dim + d, dim, FLOATS, 1))
            store_tile(columns, d * 2 * n + r, 2 * n, block)
    for e in range(0, 2 * n * dim, n):
        store(columns, e, times(load(columns, e), gain))


@inline
def _turn_back(columns, dim, near, rows, u, at, step):  # type: ignore[no-untyped-def]
    """Write columns as rows of a tile, and as many as there are into a field."""
    n = width(u)
    for r in range(0, 2 * n, n):
        for d in range(0, dim, n):
            block = turned(load_tile(columns, d * 2 * n + r, 2 * n, FLOATS, 1))
            store_tile(near, r * dim + d, dim, block)
    for r in range(rows):
        for d in range(0, dim, n):
            store(u, at + r * step + d, load(near, r * dim + d))


@inline
def _scale(columns, dim, first, second):  # type: ignore[no-untyped-def]
    """Multiply each column by the number of its lane."""
    n = width(columns)
    for e in range(0, 2 * n * dim, 2 * n):
        store(columns, e, times(load(columns, e), first))
        store(columns, e + n, times(load(columns, e + n), second))


@inline
def _take_rows(u, at, step, rows, dim, near):  # type: ignore[no-untyped-def]
    """Copy rows side by side; those that a tile has beyond them hold zeros."""
    n = width(u)
    for r in range(rows):
        for d in range(0, dim, n):
            store(near, r * dim + d, load(u, at + r * step + d))
    for e in range(rows * dim, 2 * n * dim, n):
        store(near, e, zeros(u))


@inline
def _bases(task, shape):  # type: ignore[no-untyped-def]
    """Tell where the queries and the keys of a task begin."""
    _, length, heads, keys, dim, _ = shape
    b, head = task // heads, task % heads
    return (b * length * heads + head) * dim, (b * keys * heads + head) * dim


@inline
def _fetch_rows(fields, base, step, first, last, dim):  # type: ignore[no-untyped-def]
    """Ask for rows that the next task takes, while this one computes: a cache line at a time."""
    for r in range(first, last):
        for d in range(0, dim, 16):
            for u in fields:
                fetch(u, base + r * step + d)


@inline
def _hide_future(scores, tile, first, last, value):  # type: ignore[no-untyped-def]
    """Write a value where a key stands behind its query, among the keys of the same tile."""
    for j in range(max(first + 1, 0), last):
        for i in range(min(j - first, tile)):
            put(scores, j * tile + i, value)


@inline
def _scatter(sums, index, count, keys, dim, u, base, step, gain):  # type: ignore[no-untyped-def]
    """Write rows back to where `_gather` took them from, times a number; zeros elsewhere."""
    n = width(u)
    done = 0
    for j in range(keys):
        taken = done < count and index[done] == j
        for d in range(0, dim, n):
            row = times(load(sums, done * dim + d), spread(u, gain)) if taken else zeros(u)
            store(u, base + j * step + d, row)
        done += taken


@kernel
def attend(q, k, v, out, top, sums, seen, shape, gains, first, last):  # type: ignore[no-untyped-def]
    """Mix values; leave the largest score of each query, and the sum of powers over it."""
    _, length, heads, keys, dim, causal = shape
    n = width(q)
    tile, step = 2 * n, heads * dim
    lines = (length + tile - 1) // tile * tile
    room = (keys + ROWS - 1) // ROWS * ROWS
    index = np.zeros(room, np.int64)
    near_k, near_v = aligned(room * dim, q), aligned(room * dim, q)
    scores, near = aligned(CHUNK * tile, q), aligned(dim * tile, q)
    columns, mixed = aligned(dim * tile, q), aligned(dim * tile, q)
    lowest, zero, one = q.dtype.type(-np.inf), q.dtype.type(0), spread(q, q.dtype.type(1))
    for task in range(first, last):
        b, head = task // heads, task % heads
        count = _seen_keys(seen, b, keys, index)
        base_q, base_k = _bases(task, shape)
        _gather(k, base_k, step, index, count, dim, near_k)
        _gather(v, base_k, step, index, count, dim, near_v)
        for i in range(0, length, tile):
            rows = min(tile, length - i)
            ends = min(i + tile, count) if causal else count
            if task + 1 < last:
                at_q, at_k = _bases(task + 1, shape)
                _fetch_rows((q, out), at_q, step, i, i + rows, dim)
                near_keys = (i * keys // length, (i + rows) * keys // length)
                _fetch_rows((k, v), at_k, step, near_keys[0], near_keys[1], dim)
            _take_rows(q, base_q + i * step, step, rows, dim, near)
            _turn(near, dim, spread(q, gains[0]), columns)
            mixed[:] = zero
            m0, m1 = spread(q, lowest), spread(q, lowest)
            t0, t1 = zeros(q), zeros(q)
            for c in range(0, ends, CHUNK):
                part = min(CHUNK, ends - c)
                old0, old1 = m0, m1
                hides = causal and c + part > i
                even = part // ROWS * ROWS * (not hides)  # of what is left not every row counts
                for j in range(0, part, ROWS):
                    s = same_rows(ROWS, zeros(q), zeros(q))
                    s = add_product(s, near_k, (c + j) * dim, dim, 1, columns, 0, tile, dim)
                    store_tile(scores, j * tile, tile, s)
                    if j < even:
                        m0, m1 = largest_row(s, m0, m1)
                if hides:
                    _hide_future(scores, tile, i - c, part, lowest)
                for j in range(even, part):
                    m0 = largest(m0, load(scores, j * tile))
                    m1 = largest(m1, load(scores, j * tile + n))
                f0, f1 = exp2(minus(old0, m0)), exp2(minus(old1, m1))
                t0, t1 = times(t0, f0), times(t1, f1)
                for j in range(part):
                    e0 = exp2(minus(load(scores, j * tile), m0))
                    e1 = exp2(minus(load(scores, j * tile + n), m1))
                    t0, t1 = plus(t0, e0), plus(t1, e1)
                    store(scores, j * tile, e0)
                    store(scores, j * tile + n, e1)
                for d in range(0, dim, ROWS):
                    o = load_tile(mixed, d * tile, tile, ROWS, 2)
                    o = times_tile(o, same_rows(ROWS, f0, f1))
                    o = add_product(o, near_v, c * dim + d, 1, dim, scores, 0, tile, part)
                    store_tile(mixed, d * tile, tile, o)
            _scale(mixed, dim, over(one, t0), over(one, t1))
            _turn_back(mixed, dim, near, rows, out, base_q + i * step, step)
            here = (b * heads + head) * lines + i
            store(top, here, m0)
            store(top, here + n, m1)
            store(sums, here, t0)
            store(sums, here + n, t1)


@kernel
def attend_adjoint(q, k, v, out, lse, g, dq, dk, dv, seen, shape, gains, first, last):  # type: ignore[no-untyped-def]
    """Give the slopes of queries, keys and values from that of what was mixed."""
    _, length, heads, keys, dim, causal = shape
    n = width(q)
    tile, step = 2 * n, heads * dim
    lines = (length + tile - 1) // tile * tile
    room = (keys + LINES - 1) // LINES * LINES
    wide = dim // tile * tile  # what is left is one register wide
    index = np.zeros(room, np.int64)
    near_k, near_v = aligned(room * dim, q), aligned(room * dim, q)
    sum_k, sum_v = aligned(room * dim, q), aligned(room * dim, q)
    p, ds = aligned(CHUNK * tile, q), aligned(CHUNK * tile, q)
    columns, slopes, mixed = aligned(dim * tile, q), aligned(dim * tile, q), aligned(dim * tile, q)
    near_q, near_g = aligned(dim * tile, q), aligned(dim * tile, q)
    mean = aligned(tile, q)
    zero, one = q.dtype.type(0), q.dtype.type(1)
    for task in range(first, last):
        b, head = task // heads, task % heads
        count = _seen_keys(seen, b, keys, index)
        base_q, base_k = _bases(task, shape)
        _gather(k, base_k, step, index, count, dim, near_k)
        _gather(v, base_k, step, index, count, dim, near_v)
        sum_k[:] = zero
        sum_v[:] = zero
        for i in range(0, length, tile):
            rows, at = min(tile, length - i), base_q + i * step
            ends = min(i + tile, count) if causal else count
            if task + 1 < last:
                at_q, at_k = _bases(task + 1, shape)
                near_keys = (i * keys // length, (i + rows) * keys // length)
                _fetch_rows((q, g, out, dq), at_q, step, i, i + rows, dim)
                _fetch_rows((k, v, dk, dv), at_k, step, near_keys[0], near_keys[1], dim)
            _take_rows(q, at, step, rows, dim, near_q)
            _take_rows(g, at, step, rows, dim, near_g)
            _turn(near_q, dim, spread(q, gains[0]), columns)
            _turn(near_g, dim, spread(q, one), slopes)
            for r in range(rows):
                inner = zeros(q)
                for d in range(0, dim, n):
                    inner = fma(load(near_g, r * dim + d), load(out, at + r * step + d), inner)
                mean[r] = -total(inner)
            mixed[:] = zero
            here = (b * heads + head) * lines + i
            m0, m1 = minus(zeros(q), load(lse, here)), minus(zeros(q), load(lse, here + n))
            c0, c1 = load(mean, 0), load(mean, n)
            for c in range(0, ends, CHUNK):
                part = min(CHUNK, ends - c)
                for j in range(0, part, ROWS):
                    s = same_rows(ROWS, m0, m1)
                    s = add_product(s, near_k, (c + j) * dim, dim, 1, columns, 0, tile, dim)
                    store_tile(p, j * tile, tile, exp2_tile(s))
                    s = same_rows(ROWS, c0, c1)
                    s = add_product(s, near_v, (c + j) * dim, dim, 1, slopes, 0, tile, dim)
                    s = times_tile(s, load_tile(p, j * tile, tile, ROWS, 2))
                    store_tile(ds, j * tile, tile, s)
                if causal and c + part > i:
                    _hide_future(p, tile, i - c, part, zero)
                    _hide_future(ds, tile, i - c, part, zero)
                for d in range(0, dim, ROWS):
                    o = load_tile(mixed, d * tile, tile, ROWS, 2)
                    o = add_product(o, near_k, c * dim + d, 1, dim, ds, 0, tile, part)
                    store_tile(mixed, d * tile, tile, o)
                for d in range(0, wide, tile):
                    for j in range(0, part, ROWS):
                        o = load_tile(sum_v, (c + j) * dim + d, dim, ROWS, 2)
                        o = add_product(o, p, j * tile, tile, 1, near_g, d, dim, rows)
                        store_tile(sum_v, (c + j) * dim + d, dim, o)
                        o = load_tile(sum_k, (c + j) * dim + d, dim, ROWS, 2)
                        o = add_product(o, ds, j * tile, tile, 1, near_q, d, dim, rows)
                        store_tile(sum_k, (c + j) * dim + d, dim, o)
                if wide < dim:
                    for j in range(0, part, LINES):
                        o = load_tile(sum_v, (c + j) * dim + wide, dim, LINES, 1)
                        o = add_product(o, p, j * tile, tile, 1, near_g, wide, dim, rows)
                        store_tile(sum_v, (c + j) * dim + wide, dim, o)
                        o = load_tile(sum_k, (c + j) * dim + wide, dim, LINES, 1)
                        o = add_product(o, ds, j * tile, tile, 1, near_q, wide, dim, rows)
                        store_tile(sum_k, (c + j) * dim + wide, dim, o)
            _scale(mixed, dim, spread(q, gains[1]), spread(q, gains[1]))
            _turn_back(mixed, dim, near_q, rows, dq, at, step)
        _scatter(sum_k, index, count, keys, dim, dk, base_k, step, gains[1])
        _scatter(sum_v, index, count, keys, dim, dv, base_k, step, one)
