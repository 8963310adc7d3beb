"""Numba kernels of the explicit and the upwind step, on the CPU.

One step in flux form, with the two numbers (c, k) that make it symmetric, upwind or its adjoint:

    f_e = r (u_j − c u_i),  e = (i, j = i + δ)        u_i ← u_i + k f_{i+½} − f_{i−½}

    c = k = 1: symmetric, its own adjoint      c = 1, k = 0: upwind      c = 0, k = 1: its adjoint

Cost: `step` reads the field once and writes it once (neighbouring rows come from the cache); so
does `four_steps`, which takes four steps at once in registers. Rows whose edges are all open are
updated several at a time as one flat array; the others one by one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depthpde.shapes import Edges, Field

LANES = 8  # features that `leap` keeps in registers at once
WIDTH = 64  # features that stand together in its state
ROWS = 4  # sites that `leap` advances between two touches of its state
LEAP = 4  # steps of one `leap`
FLAT = 512  # numbers in one flat run of `step`

_ALL_OPEN = np.zeros((0, 0), np.uint8)
_launch = threading.Lock()
_told = threading.local()  # the number of threads numba was last told, by each Python thread
COMPILE = {"nogil": True, "fastmath": {"contract", "nsz"}, "error_model": "numpy", "cache": True}
SUM = COMPILE | {"fastmath": {"contract", "nsz", "reassoc"}}  # sums in any order, so in lanes


def launch(kernel: Callable[..., None], *arguments: Any) -> None:
    """Run a parallel kernel on as many threads as torch uses, one kernel at a time.

    Numba's portable thread pool may not be entered by two threads at once, and the first start of
    its OpenMP pool changes torch's number of threads, which is put back.
    """
    threads = torch.get_num_threads()
    with _launch:
        if getattr(_told, "threads", None) != threads:
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
            _told.threads = threads
        kernel(*arguments)
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def arrays(*tensors: Tensor) -> tuple[NDArray[Any], ...]:
    """Show contiguous CPU tensors to numba, without a copy."""
    return tuple(tensor.numpy() for tensor in tensors)


def edge_array(edges: Edges | None) -> NDArray[np.uint8]:
    """Show open edges to numba; an empty array stands for all open."""
    if edges is None:
        return _ALL_OPEN
    return edges.contiguous().numpy().view(np.uint8)


def scalar(u: Field, value: float) -> np.floating[Any]:
    """Give a number in the field's own precision, so that nothing is promoted."""
    return np.float64(value) if u.dtype == torch.float64 else np.float32(value)


def tile_length(batch: int, length: int) -> int:
    """Choose how many sites one task takes: at least eight tasks a thread where length allows."""
    tasks_per_row = -(-8 * torch.get_num_threads() // max(batch, 1))
    return max(64, -(-length // tasks_per_row))


@numba.njit(inline="always")
def is_open(edges, row, e):  # type: ignore[no-untyped-def]
    """Tell whether edge e is open; `row` is the sequence's own, or the one that serves all."""
    return edges.shape[0] == 0 or edges[row, e] != 0


@numba.njit(inline="always")
def row_of(edges, b):  # type: ignore[no-untyped-def]
    """Give the row of the edges that belongs to sequence b."""
    return np.int64(b) if edges.shape[0] > 1 else np.int64(0)


@numba.njit(inline="always")
def _spread(ratio, b, copies, out):  # type: ignore[no-untyped-def]
    """Write the ratio of every feature, as often as sites are updated at once."""
    row = ratio[b if ratio.shape[0] > 1 else 0, 0]
    dim = out.shape[0] // copies
    for d in range(dim):
        value = row[d] if ratio.shape[2] > 1 else row[0]
        for m in range(copies):
            out[m * dim + d] = value


@numba.njit(inline="always")
def _sides(i, length, dilation, periodic, edges, row):  # type: ignore[no-untyped-def]
    """Give the two neighbours of a site and whether the edges to them are open."""
    low, high = i - dilation, i + dilation
    if periodic:
        return low % length, high % length, True, True
    left = low >= 0 and is_open(edges, row, low)
    right = high < length and is_open(edges, row, i)
    return max(low, 0), min(high, length - 1), left, right


@numba.njit(inline="always")
def _open_run(i, stop, longest, length, dilation, edges, row):  # type: ignore[no-untyped-def]
    """Count the sites from i on whose two edges are open and do not wrap around."""
    if i < dilation:
        return 0
    stop = min(stop, length - dilation, i + longest)
    if edges.shape[0] == 0:
        return max(0, stop - i)
    n = 0
    while i + n < stop and is_open(edges, row, i + n) and is_open(edges, row, i + n - dilation):
        n += 1
    return n


@numba.njit(inline="always")
def _update(there, here, low, high, r, c, k):  # type: ignore[no-untyped-def]
    """Take one step of a flat run of sites whose edges are all open."""
    if c == 1 and k == 1:
        for t in range(here.shape[0]):
            there[t] = here[t] + r[t] * ((high[t] - here[t]) - (here[t] - low[t]))
    else:
        for t in range(here.shape[0]):
            there[t] = here[t] + r[t] * (k * (high[t] - c * here[t]) - (here[t] - c * low[t]))


@numba.njit(parallel=True, **COMPILE)
def step(u, ratio, edges, out, dilation, periodic, c, k, tile):  # type: ignore[no-untyped-def]
    """Take one step with a ratio that is the same at every edge of a sequence."""
    batch, length, dim = u.shape
    tiles = (length + tile - 1) // tile
    longest = max(1, FLAT // dim)
    flat, flat_out = u.reshape(batch, length * dim), out.reshape(batch, length * dim)
    for task in numba.prange(batch * tiles):
        b, start = task // tiles, (task % tiles) * tile
        stop = min(length, start + tile)
        r = np.empty(longest * dim, u.dtype)
        _spread(ratio, b, longest, r)
        row = row_of(edges, b)
        i = start
        while i < stop:
            run = _open_run(i, stop, longest, length, dilation, edges, row)
            if run > 0:
                n, at, shift = run * dim, i * dim, dilation * dim
                here, there = flat[b, at : at + n], flat_out[b, at : at + n]
                low = flat[b, at - shift : at - shift + n]
                high = flat[b, at + shift : at + shift + n]
                _update(there, here, low, high, r, c, k)
                i += run
                continue
            below, above, left, right = _sides(i, length, dilation, periodic, edges, row)
            for d in range(dim):
                x = u[b, i, d]
                gain = k * (u[b, above, d] - c * x) if right else k * 0
                loss = x - c * u[b, below, d] if left else k * 0
                out[b, i, d] = x + r[d] * (gain - loss)
            i += 1


@numba.njit(inline="always")
def _update_and_sum(there, here, low, high, r, field, total, c, k):  # type: ignore[no-untyped-def]
    """Take one step of a flat run, and add what the step brings, times the field, to the sums."""
    if c == 1 and k == 1:
        for t in range(here.shape[0]):
            brought = (high[t] - here[t]) - (here[t] - low[t])
            there[t] = here[t] + r[t] * brought
            total[t] += brought * field[t]
    else:
        for t in range(here.shape[0]):
            brought = k * (high[t] - c * here[t]) - (here[t] - c * low[t])
            there[t] = here[t] + r[t] * brought
            total[t] += brought * field[t]


@numba.njit(parallel=True, **COMPILE)
def step_adjoint(  # type: ignore[no-untyped-def]
    g, u, ratio, edges, out, partial, dilation, periodic, c, k, factor, tile
):
    """Take one step g ← g + rMᵀg, and sum factor · (Mᵀg)_i u_i over the sites of a tile."""
    batch, length, dim = g.shape
    tiles = (length + tile - 1) // tile
    longest = max(1, FLAT // dim)
    flat, flat_out = g.reshape(batch, length * dim), out.reshape(batch, length * dim)
    flat_field = u.reshape(batch, length * dim)
    for task in numba.prange(batch * tiles):
        b, start = task // tiles, (task % tiles) * tile
        stop = min(length, start + tile)
        r = np.empty(longest * dim, g.dtype)
        total = np.zeros(longest * dim, g.dtype)
        _spread(ratio, b, longest, r)
        row = row_of(edges, b)
        i = start
        while i < stop:
            run = _open_run(i, stop, longest, length, dilation, edges, row)
            if run > 0:
                n, at, shift = run * dim, i * dim, dilation * dim
                here, there = flat[b, at : at + n], flat_out[b, at : at + n]
                low = flat[b, at - shift : at - shift + n]
                high = flat[b, at + shift : at + shift + n]
                field = flat_field[b, at : at + n]
                _update_and_sum(there, here, low, high, r, field, total, c, k)
                i += run
                continue
            below, above, left, right = _sides(i, length, dilation, periodic, edges, row)
            for d in range(dim):
                x = g[b, i, d]
                gain = k * (g[b, above, d] - c * x) if right else k * 0
                loss = x - c * g[b, below, d] if left else k * 0
                out[b, i, d] = x + r[d] * (gain - loss)
                if left or right:
                    total[d] += (gain - loss) * u[b, i, d]
            i += 1
        sums = partial[b, task % tiles]
        for d in range(dim):
            sums[d] = 0
        for m in range(longest):
            for d in range(dim):
                sums[d] += factor * total[m * dim + d]


@numba.njit(parallel=True, **COMPILE)
def four_steps(u, ratio, edges, out, tile):  # type: ignore[no-untyped-def]
    """Take four symmetric steps between no-flux ends while every row is read and written once.

    Row j enters; stage s then turns row j − 1 − s from its s-th into its (s+1)-th state, for
    which it needs only the row behind it, p, and that row's difference to the one before, q. A
    tile starts and ends four sites beyond what it writes.
    """
    batch, length, dim = u.shape
    tiles = (length + tile - 1) // tile
    blocks = (dim + WIDTH - 1) // WIDTH
    zero = ratio[0, 0, 0] * 0
    for task in numba.prange(batch * tiles):
        b, start = task // tiles, (task % tiles) * tile
        stop = min(length, start + tile)
        first, last = max(0, start - LEAP), min(length, stop + LEAP)
        # rows of the state: 0–3 p of each stage, 4–7 q, 8 the ratio, then the rows in work
        state = np.zeros((blocks, 9 + ROWS, WIDTH), u.dtype)
        r = np.empty(dim, u.dtype)
        _spread(ratio, b, 1, r)
        mine = row_of(edges, b)
        for d in range(dim):
            state[d // WIDTH, 8, d % WIDTH] = r[d]
        opened = 0  # bit s: is the edge that stage s will use open?
        j = first
        while j < last + LEAP:
            done = j - LEAP
            if (
                opened == 15
                and done >= start
                and done + ROWS <= stop
                and j + ROWS <= last
                and _open_run(j - 1, j - 1 + ROWS, ROWS, length, 1, edges, mine) == ROWS
            ):
                for m in range(ROWS):
                    for block in range(blocks):
                        low = block * WIDTH
                        row, there = u[b, j + m, low : low + WIDTH], state[block, 9 + m]
                        for d in range(row.shape[0]):
                            there[d] = row[d]
                for block in range(blocks):
                    for low in range(0, WIDTH, LANES):
                        _advance(state[block], low)
                for m in range(ROWS):
                    for block in range(blocks):
                        low = block * WIDTH
                        row, there = state[block, 9 + m], out[b, done + m, low : low + WIDTH]
                        for d in range(there.shape[0]):
                            there[d] = row[d]
                j += ROWS
                continue
            fresh = 1 if first < j < last and is_open(edges, mine, j - 1) else 0
            opened = ((opened << 1) | fresh) & 15
            for block in range(blocks):
                low = block * WIDTH
                row = u[b, min(j, last - 1), low : low + WIDTH]
                there = out[b, min(max(done, start), stop - 1), low : low + WIDTH]
                _enter(row, state[block], there, opened, start <= done < stop, zero)
            j += 1


@numba.njit(inline="always")
def _advance(s, low):  # type: ignore[no-untyped-def]
    """Let the rows in work pass all four stages, the stages' state in registers."""
    for d in range(low, low + LANES):
        r = s[8, d]
        p0, p1, p2, p3 = s[0, d], s[1, d], s[2, d], s[3, d]
        q0, q1, q2, q3 = s[4, d], s[5, d], s[6, d], s[7, d]
        for m in range(ROWS):
            x = s[9 + m, d]
            q = x - p0
            y = p0 + r * (q - q0)
            p0, q0 = x, q
            q = y - p1
            x = p1 + r * (q - q1)
            p1, q1 = y, q
            q = x - p2
            y = p2 + r * (q - q2)
            p2, q2 = x, q
            q = y - p3
            s[9 + m, d] = p3 + r * (q - q3)
            p3, q3 = y, q
        s[0, d], s[1, d], s[2, d], s[3, d] = p0, p1, p2, p3
        s[4, d], s[5, d], s[6, d], s[7, d] = q0, q1, q2, q3


@numba.njit(inline="always")
def _enter(row, s, there, opened, write, zero):  # type: ignore[no-untyped-def]
    """Let one row enter, some of whose edges may be cut."""
    for d in range(row.shape[0]):
        s[9, d] = row[d]
    for stage in range(LEAP):
        if (opened >> stage) & 1:
            for d in range(WIDTH):
                x, p = s[9, d], s[stage, d]
                q = x - p
                s[9, d] = p + s[8, d] * (q - s[4 + stage, d])
                s[stage, d], s[4 + stage, d] = x, q
        else:
            for d in range(WIDTH):
                x, p = s[9, d], s[stage, d]
                s[9, d] = p - s[8, d] * s[4 + stage, d]
                s[stage, d], s[4 + stage, d] = x, zero
    if write:
        for d in range(there.shape[0]):
            there[d] = s[9, d]


@numba.njit(parallel=True, **COMPILE)
def step_by_edge(u, ratio, edges, out, dilation, periodic, c, k, tile):  # type: ignore[no-untyped-def]
    """Take one step with a ratio of its own at every edge."""
    batch, length, dim = u.shape
    tiles = (length + tile - 1) // tile
    shared = ratio.shape[2] == 1
    for task in numba.prange(batch * tiles):
        b, start = task // tiles, (task % tiles) * tile
        rb, row = b if ratio.shape[0] > 1 else 0, row_of(edges, b)
        for i in range(start, min(length, start + tile)):
            below, above, left, right = _sides(i, length, dilation, periodic, edges, row)
            here, low, high, there = u[b, i], u[b, below], u[b, above], out[b, i]
            lower = ratio[rb, below if left else 0]
            upper = ratio[rb, i if right else 0]
            if shared:
                down = lower[0] if left else k * 0
                up = k * upper[0] if right else k * 0
                if left and right:
                    for d in range(dim):
                        there[d] = here[d] + (
                            up * (high[d] - c * here[d]) - down * (here[d] - c * low[d])
                        )
                    continue
                for d in range(dim):
                    gain = up * (high[d] - c * here[d]) if right else k * 0
                    loss = down * (here[d] - c * low[d]) if left else k * 0
                    there[d] = here[d] + (gain - loss)
                continue
            if left and right:
                for d in range(dim):
                    gain = k * upper[d] * (high[d] - c * here[d])
                    there[d] = here[d] + (gain - lower[d] * (here[d] - c * low[d]))
                continue
            for d in range(dim):
                gain = k * upper[d] * (high[d] - c * here[d]) if right else k * 0
                loss = lower[d] * (here[d] - c * low[d]) if left else k * 0
                there[d] = here[d] + (gain - loss)


@numba.njit(parallel=True, **SUM)
def edge_gradient(g, u, edges, out, dilation, c):  # type: ignore[no-untyped-def]
    """Add −(g_j − c g_i)(u_j − u_i) to every edge, summed over features if `out` has only one."""
    batch, length, dim = g.shape
    num_edges = out.shape[1]
    shared = out.shape[2] == 1
    for b in numba.prange(batch):
        row = row_of(edges, b)
        for e in range(num_edges):
            if not is_open(edges, row, e):
                continue
            far = (e + dilation) % length
            g0, g1, u0, u1, there = g[b, e], g[b, far], u[b, e], u[b, far], out[b, e]
            if shared:
                total = c * 0
                for d in range(dim):
                    total += (g1[d] - c * g0[d]) * (u1[d] - u0[d])
                there[0] -= total
            else:
                for d in range(dim):
                    there[d] -= (g1[d] - c * g0[d]) * (u1[d] - u0[d])
