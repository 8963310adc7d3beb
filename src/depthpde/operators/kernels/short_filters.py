"""A causal filter of a few taps with its bias and activation on the CPU, one pass each way.

    z_t = b + Σ_k a_k x_{t−p+k}        y_t = z_t, or silu(z_t) = z_t σ(z_t)        p = K − 1

    g'_t = g_t silu'(z_t)              silu' = σ + z σ (1 − σ)
    ∂x_s = Σ_j a_{p−j} g'_{s+j}        ∂a_k = Σ_t g'_t x_{t−p+k}        ∂b = Σ_t g'_t

Nothing stands before a wall: zeros, as a convolution has them. Cost: forward reads x and writes y;
backward reads g and x and writes ∂x, since z is computed again. Whole rows of features are taken
one after the other, so memory is read as it lies; the K rows that a site needs are in the first
cache, and so are the K rows of g' that ∂x waits for.
"""

from __future__ import annotations

import math

from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.lanes import (
    above_zero,
    aligned,
    exp2,
    fma,
    get,
    largest,
    load,
    minus,
    over,
    plus,
    put,
    spread,
    store,
    times,
    width,
    zeros,
)
from depthpde.operators.kernels.walls import is_open, row_of

LOG2_E = 1 / math.log(2)


@inline
def _past(i, most, edges, row):  # type: ignore[no-untyped-def]
    """Count the sites in front of i that no wall hides, up to `most`."""
    m = 0
    while m < most and m < i and is_open(edges, row, i - m - 1):
        m += 1
    return m


@inline
def _linear(x, taps, bias, at, d, dim, m, num_taps):  # type: ignore[no-untyped-def]
    """Give z of N features at the site that begins at `at`; m sites in front count."""
    z, tap, place = load(bias, d), (num_taps - 1) * dim + d, at + d
    if m == 3:  # the usual width, unrolled
        z = fma(load(taps, tap), load(x, place), z)
        z = fma(load(taps, tap - dim), load(x, place - dim), z)
        z = fma(load(taps, tap - 2 * dim), load(x, place - 2 * dim), z)
        return fma(load(taps, tap - 3 * dim), load(x, place - 3 * dim), z)
    for k in range(m + 1):
        z = fma(load(taps, tap - k * dim), load(x, place - k * dim), z)
    return z


@inline
def _linear_one(x, taps, bias, at, d, dim, m, num_taps):  # type: ignore[no-untyped-def]
    """Give z of one feature."""
    z = bias[d]
    for k in range(m + 1):
        z += taps[(num_taps - 1 - k) * dim + d] * get(x, at + d - k * dim)
    return z


@inline
def _sigmoid(z, like):  # type: ignore[no-untyped-def]
    """Give σ(z) of N numbers: e^−|z| never overflows."""
    one = spread(like, like.dtype.type(1))
    size = largest(z, minus(zeros(like), z))
    small = exp2(times(size, spread(like, like.dtype.type(-LOG2_E))))
    share = over(one, plus(one, small))
    return above_zero(z, share, times(small, share))


@kernel
def convolve(  # type: ignore[no-untyped-def]
    x, taps, bias, edges, out, shape, num_taps, silu, chunk, first, last
):
    """Filter a field; a task is one chunk of the sites of a sequence. Taps: [K · dim], flat."""
    _, length, dim = shape
    w, chunks = width(taps), (length + chunk - 1) // chunk
    for task in range(first, last):
        b, i = task // chunks, task % chunks * chunk
        stop, row, base = min(length, i + chunk), row_of(edges, b), b * length * dim
        m = _past(i, num_taps - 1, edges, row)
        for t in range(i, stop):
            at = base + t * dim
            for d in range(0, dim - w + 1, w):
                z = _linear(x, taps, bias, at, d, dim, m, num_taps)
                if silu:
                    z = times(z, _sigmoid(z, taps))
                store(out, at + d, z)
            for d in range(dim - dim % w, dim):
                y = _linear_one(x, taps, bias, at, d, dim, m, num_taps)
                if silu:
                    y = y / (1 + math.exp(-y))
                put(out, at + d, y)
            m = min(m + 1, num_taps - 1) if t + 1 < length and is_open(edges, row, t) else 0


@inline
def _add_sums(x, grads, slot, sums, at, d, dim, m, num_taps):  # type: ignore[no-untyped-def]
    """Add g' of N features at one site to the gradients of taps and bias."""
    g, to = load(grads, slot + d), num_taps * dim + d
    store(sums, to, plus(load(sums, to), g))
    for k in range(m + 1):
        to -= dim
        store(sums, to, fma(g, load(x, at + d - k * dim), load(sums, to)))


@inline
def _emit(grads, taps, out, base, s, count, dim, num_taps):  # type: ignore[no-untyped-def]
    """Write ∂x of site s from g' of the `count` sites from s on."""
    w = width(taps)
    for d in range(0, dim - w + 1, w):
        total = zeros(taps)
        for j in range(count):
            tap, slot = (num_taps - 1 - j) * dim + d, (s + j) % num_taps * dim + d
            total = fma(load(taps, tap), load(grads, slot), total)
        store(out, base + s * dim + d, total)
    for d in range(dim - dim % w, dim):
        one = taps[0] * 0
        for j in range(count):
            one += taps[(num_taps - 1 - j) * dim + d] * grads[(s + j) % num_taps * dim + d]
        put(out, base + s * dim + d, one)


@inline
def _pull_site(g, x, taps, bias, grads, slot, at, dim, m, num_taps, silu):  # type: ignore[no-untyped-def]
    """Write g' of one site into its row of the ring."""
    w = width(taps)
    for d in range(0, dim - w + 1, w):
        pulled = load(g, at + d)
        if silu:
            z = _linear(x, taps, bias, at, d, dim, m, num_taps)
            share = _sigmoid(z, taps)
            rest = times(z, minus(spread(taps, taps.dtype.type(1)), share))
            pulled = times(pulled, fma(share, rest, share))
        store(grads, slot + d, pulled)
    for d in range(dim - dim % w, dim):
        one = get(g, at + d)
        if silu:
            y = _linear_one(x, taps, bias, at, d, dim, m, num_taps)
            part = 1 / (1 + math.exp(-y))
            one *= part + y * part * (1 - part)
        grads[slot + d] = one


@kernel
def convolve_adjoint(  # type: ignore[no-untyped-def]
    g, x, taps, bias, edges, out, partial, shape, num_taps, silu, chunk, first, last
):
    """Give ∂x, and ∂a and ∂b summed over each chunk: `partial`, [tasks, (K + 1) · dim].

    The K − 1 sites behind a chunk are computed again, for the ∂x of its last sites.
    """
    _, length, dim = shape
    w, chunks, past = width(taps), (length + chunk - 1) // chunk, num_taps - 1
    grads = aligned(num_taps * dim, taps)
    for task in range(first, last):
        b, i = task // chunks, task % chunks * chunk
        stop, row, base = min(length, i + chunk), row_of(edges, b), b * length * dim
        sums, m, t = partial[task], _past(i, past, edges, row), i
        sums[:] = 0
        begun = i  # the first site of this chunk and piece whose ∂x is not written yet
        while t < length and (t < stop or begun < stop):
            slot, at = t % num_taps * dim, base + t * dim
            _pull_site(g, x, taps, bias, grads, slot, at, dim, m, num_taps, silu)
            if t < stop:
                for d in range(0, dim - w + 1, w):
                    _add_sums(x, grads, slot, sums, at, d, dim, m, num_taps)
                for d in range(dim - dim % w, dim):
                    sums[num_taps * dim + d] += grads[slot + d]
                    for k in range(m + 1):
                        to = (past - k) * dim + d
                        sums[to] += grads[slot + d] * get(x, at + d - k * dim)
            ends = t + 1 == length or not is_open(edges, row, t)
            while begun < stop and begun <= t and (ends or begun + past <= t):
                _emit(grads, taps, out, base, begun, min(num_taps, t + 1 - begun), dim, num_taps)
                begun += 1
            if ends and t + 1 >= stop:
                break
            m = 0 if ends else min(m + 1, past)
            t += 1
