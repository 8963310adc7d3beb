"""Softmax attention on the CPU in one pass each way: no matrix [length, length] is kept.

    out_i = Σ_j p_ij v_j,    p_ij = 2^(s_ij − lse_i),    s_ij = log₂e · ⟨q_i, k_j⟩ / √head_dim

    dv_j = Σ_i p_ij g_i      dq_i = Σ_j ds_ij k_j / √head_dim      dk_j = Σ_i ds_ij q_i / √head_dim
    ds_ij = p_ij (⟨g_i, v_j⟩ − ⟨g_i, out_i⟩)

A task is one head of one sequence. It takes as many queries as two registers have lanes, so that
maxima, sums and exponentials need no step across lanes, and every product is one small kernel that
keeps four rows of two registers: 88–94 of 90 GFLOP/s a core with AVX2 where torch's blocks of a
general product reach 40. Keys that are padding are not gathered, so they cost nothing.

Memory traffic: q, k, v and out once forward; those, g and three gradients once backward.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depthpde.operators.diffusion.kernels.compilation import inline, kernel
from depthpde.operators.diffusion.kernels.lanes import (
    FLOATS,
    exp2,
    fma,
    get,
    largest,
    load,
    minus,
    plus,
    put,
    spread,
    store,
    times,
    total,
    width,
    zeros,
)
from depthpde.operators.diffusion.kernels.threads import launch
from depthpde.operators.diffusion.operator import runs_eagerly
from depthpde.operators.interaction import attention_weights
from depthpde.shapes import Mask

LONGEST = 2048
"""Keys up to which the scores of a few queries stay in a core's own cache."""
_LOG2E = 1.4426950408889634


def supports(query: Tensor, key: Tensor, valid_mask: Mask | None, *, causal: bool) -> bool:
    """Tell whether the kernel does this case, here and now.

    Args:
        query: [batch, heads, length, head_dim].
        key: [batch, heads, keys, head_dim].
        valid_mask: True = real key, [batch, keys].
        causal: Whether a site sees only itself and the sites before it.
    """
    batch, _, length, head_dim = query.shape
    return (
        runs_eagerly(query)
        and query.dtype == key.dtype == torch.float32
        and head_dim % FLOATS == 0
        and length >= 2 * FLOATS
        and 0 < key.shape[2] <= LONGEST
        and batch > 0
        and not (causal and (valid_mask is not None or length != key.shape[2]))
        # switched off where somebody asks for the plain composite
        and torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
    )


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None, *, causal: bool
) -> Tensor:
    """Mix values by softmax weights, in one pass.

        out = softmax(q kᵀ / √head_dim) v        over keys that are seen

    A sequence of nothing but padding sees all of it. Arguments as of `supports`, where it says so.
    """
    return _Attend.apply(query, key, value, valid_mask, causal)  # type: ignore[no-untyped-call]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None, causal: bool
    ) -> Tensor:
        q, k, v = (_rows(each) for each in (query, key, value))
        out, lse = torch.empty_like(q), q.new_empty(q.shape[:3])
        shape, gains, seen = _settings(q, k, valid_mask, causal)
        launch(
            _attend, shape[0] * shape[2], q.numel() * shape[3],
            *map(_flat, (q, k, v, out, lse)), seen, shape, gains,
        )  # fmt: skip
        ctx.save_for_backward(query, key, value, valid_mask, out, lse)
        ctx.causal = causal
        return out.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, valid_mask, out, lse = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of this gradient will be asked for
            mixed = _composite(query, key, value, valid_mask, causal=ctx.causal)
            inputs = [each for each in (query, key, value) if each.requires_grad]
            found = iter(torch.autograd.grad(mixed, inputs, grads[0], create_graph=True))
            second = (next(found) if each.requires_grad else None for each in (query, key, value))
            return (*second, None, None)
        q, k, v, g = (_rows(each) for each in (query, key, value, grads[0]))
        into = [torch.empty_like(each) for each in (q, k, v)]
        shape, gains, seen = _settings(q, k, valid_mask, ctx.causal)
        launch(
            _attend_adjoint, shape[0] * shape[2], q.numel() * shape[3],
            *map(_flat, (q, k, v, out, lse, g, *into)), seen, shape, gains,
        )  # fmt: skip
        return (*(each.transpose(1, 2) for each in into), None, None)


def _composite(
    query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None, *, causal: bool
) -> Tensor:
    """Do the same by torch operations, for derivatives of any order."""
    if valid_mask is None:
        return attention_weights(query, key, causal=causal) @ value
    seen = (valid_mask | ~valid_mask.any(dim=1, keepdim=True))[:, None, None, :]
    scores = (query @ key.mT) * query.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1) @ value


def _rows(u: Tensor) -> Tensor:
    """Return [batch, length, heads, head_dim]; no copy where heads were split off a field."""
    return u.detach().transpose(1, 2).contiguous()


def _flat(u: Tensor) -> NDArray[Any]:
    return u.numpy().reshape(-1)


def _settings(
    q: Tensor, k: Tensor, valid_mask: Mask | None, causal: bool
) -> tuple[tuple[int, ...], tuple[np.float32, np.float32], NDArray[np.uint8]]:
    """Return (batch, queries, heads, keys, head_dim, causal), the gains and the keys seen."""
    batch, length, heads, head_dim = q.shape
    shape = (batch, length, heads, k.shape[1], head_dim, int(causal))
    gain = head_dim**-0.5
    if valid_mask is None:
        seen = np.zeros((0, 0), np.uint8)
    else:
        open_rows = valid_mask | ~valid_mask.any(dim=1, keepdim=True)
        seen = open_rows.contiguous().numpy().view(np.uint8)
    return shape, (np.float32(gain * _LOG2E), np.float32(gain)), seen


@inline
def _product(a, at, row, column, b, to, line, count, c, into, stride, add):  # type: ignore[no-untyped-def]
    """Give c[r] (+)= Σ_k a[r, k] b[k] for four rows r of two registers each."""
    n = width(b)
    p, q, r, s = into, into + stride, into + 2 * stride, into + 3 * stride
    if add:
        p0, p1, q0, q1 = load(c, p), load(c, p + n), load(c, q), load(c, q + n)
        r0, r1, s0, s1 = load(c, r), load(c, r + n), load(c, s), load(c, s + n)
    else:
        p0, p1, q0, q1 = zeros(b), zeros(b), zeros(b), zeros(b)
        r0, r1, s0, s1 = zeros(b), zeros(b), zeros(b), zeros(b)
    for k in range(count):
        x, y = load(b, to + k * line), load(b, to + k * line + n)
        place = at + k * column
        w = spread(b, get(a, place))
        p0, p1 = fma(w, x, p0), fma(w, y, p1)
        w = spread(b, get(a, place + row))
        q0, q1 = fma(w, x, q0), fma(w, y, q1)
        w = spread(b, get(a, place + 2 * row))
        r0, r1 = fma(w, x, r0), fma(w, y, r1)
        w = spread(b, get(a, place + 3 * row))
        s0, s1 = fma(w, x, s0), fma(w, y, s1)
    store(c, p, p0)
    store(c, p + n, p1)
    store(c, q, q0)
    store(c, q + n, q1)
    store(c, r, r0)
    store(c, r + n, r1)
    store(c, s, s0)
    store(c, s + n, s1)


@inline
def _column_product(a, at, row, b, to, line, count, c, into, stride):  # type: ignore[no-untyped-def]
    """Give c[r] += Σ_k a[r, k] b[k] for eight rows r of one register each."""
    half = into + 4 * stride
    s0, s1, s2 = load(c, into), load(c, into + stride), load(c, into + 2 * stride)
    s3, s4, s5 = load(c, into + 3 * stride), load(c, half), load(c, half + stride)
    s6, s7 = load(c, half + 2 * stride), load(c, half + 3 * stride)
    for k in range(count):
        x, place = load(b, to + k * line), at + k
        s0 = fma(spread(b, get(a, place)), x, s0)
        s1 = fma(spread(b, get(a, place + row)), x, s1)
        s2 = fma(spread(b, get(a, place + 2 * row)), x, s2)
        s3 = fma(spread(b, get(a, place + 3 * row)), x, s3)
        s4 = fma(spread(b, get(a, place + 4 * row)), x, s4)
        s5 = fma(spread(b, get(a, place + 5 * row)), x, s5)
        s6 = fma(spread(b, get(a, place + 6 * row)), x, s6)
        s7 = fma(spread(b, get(a, place + 7 * row)), x, s7)
    store(c, into, s0)
    store(c, into + stride, s1)
    store(c, into + 2 * stride, s2)
    store(c, into + 3 * stride, s3)
    store(c, into + 4 * stride, s4)
    store(c, into + 5 * stride, s5)
    store(c, into + 6 * stride, s6)
    store(c, into + 7 * stride, s7)


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
    for e in range(count * dim, (count + 3) // 4 * 4 * dim, n):
        store(out, e, zeros(out))


@inline
def _turn(u, base, step, rows, dim, tile, gain, out):  # type: ignore[no-untyped-def]
    """Write rows as columns, times a number: one lane a row; lanes without one hold zeros."""
    if rows < tile:
        for e in range(0, dim * tile, width(u)):
            store(out, e, zeros(out))
    for i in range(rows):
        at = base + i * step
        for d in range(dim):
            put(out, d * tile + i, get(u, at + d) * gain)


@inline
def _turn_back(columns, rows, dim, tile, u, base, step, gains):  # type: ignore[no-untyped-def]
    for i in range(rows):
        at, gain = base + i * step, get(gains, i)
        for d in range(dim):
            put(u, at + d, get(columns, d * tile + i) * gain)


@inline
def _hide_future(scores, tile, first, last, value):  # type: ignore[no-untyped-def]
    """Write a value where a key stands behind its query, among the keys of the same tile."""
    for j in range(first + 1, last):
        for i in range(min(j - first, tile)):
            put(scores, j * tile + i, value)


@kernel
def _attend(q, k, v, out, lse, seen, shape, gains, first, last):  # type: ignore[no-untyped-def]
    _, length, heads, keys, dim, causal = shape
    n = width(q)
    tile, step = 2 * n, heads * dim
    room = (keys + 3) // 4 * 4
    index = np.zeros(room, np.int64)
    near_k, near_v = np.zeros(room * dim, q.dtype), np.zeros(room * dim, q.dtype)
    scores = np.zeros(room * tile, q.dtype)
    columns, mixed = np.zeros(dim * tile, q.dtype), np.zeros(dim * tile, q.dtype)
    top, sums = np.zeros(tile, q.dtype), np.zeros(tile, q.dtype)
    lowest, one = q.dtype.type(-np.inf), q.dtype.type(1)
    for task in range(first, last):
        b, head = task // heads, task % heads
        count = _seen_keys(seen, b, keys, index)
        base_k, base_q = (b * keys * heads + head) * dim, (b * length * heads + head) * dim
        _gather(k, base_k, step, index, count, dim, near_k)
        _gather(v, base_k, step, index, count, dim, near_v)
        for i in range(0, length, tile):
            rows = min(tile, length - i)
            ends = min(i + tile, count) if causal else count
            _turn(q, base_q + i * step, step, rows, dim, tile, gains[0], columns)
            for j in range(0, ends, 4):
                _product(near_k, j * dim, dim, 1, columns, 0, tile, dim,
                         scores, j * tile, tile, False)  # fmt: skip
            if causal:
                _hide_future(scores, tile, i, ends, lowest)
            m0, m1 = load(scores, 0), load(scores, n)
            for j in range(ends):
                m0 = largest(m0, load(scores, j * tile))
                m1 = largest(m1, load(scores, j * tile + n))
            t0, t1 = zeros(q), zeros(q)
            for j in range(ends):
                e0 = exp2(minus(load(scores, j * tile), m0))
                e1 = exp2(minus(load(scores, j * tile + n), m1))
                t0, t1 = plus(t0, e0), plus(t1, e1)
                store(scores, j * tile, e0)
                store(scores, j * tile + n, e1)
            for d in range(0, dim, 4):
                _product(near_v, d, 1, dim, scores, 0, tile, ends, mixed, d * tile, tile, False)
            store(top, 0, m0)
            store(top, n, m1)
            store(sums, 0, t0)
            store(sums, n, t1)
            for r in range(rows):
                lse[(b * length + i + r) * heads + head] = top[r] + np.log2(sums[r])
                sums[r] = one / sums[r]
            _turn_back(mixed, rows, dim, tile, out, base_q + i * step, step, sums)


@kernel
def _attend_adjoint(q, k, v, out, lse, g, dq, dk, dv, seen, shape, gains, first, last):  # type: ignore[no-untyped-def]
    _, length, heads, keys, dim, causal = shape
    n = width(q)
    tile, step = 2 * n, heads * dim
    room = (keys + 7) // 8 * 8
    wide = dim // tile * tile  # what is left is one register wide
    index = np.zeros(room, np.int64)
    near_k, near_v = np.zeros(room * dim, q.dtype), np.zeros(room * dim, q.dtype)
    sum_k, sum_v = np.zeros(room * dim, q.dtype), np.zeros(room * dim, q.dtype)
    p, ds = np.zeros(room * tile, q.dtype), np.zeros(room * tile, q.dtype)
    columns, slopes = np.zeros(dim * tile, q.dtype), np.zeros(dim * tile, q.dtype)
    mixed = np.zeros(dim * tile, q.dtype)
    top, mean = np.zeros(tile, q.dtype), np.zeros(tile, q.dtype)
    gain = np.full(tile, gains[1], q.dtype)
    zero, one = q.dtype.type(0), q.dtype.type(1)
    for task in range(first, last):
        b, head = task // heads, task % heads
        count = _seen_keys(seen, b, keys, index)
        base_k, base_q = (b * keys * heads + head) * dim, (b * length * heads + head) * dim
        _gather(k, base_k, step, index, count, dim, near_k)
        _gather(v, base_k, step, index, count, dim, near_v)
        sum_k[:] = zero
        sum_v[:] = zero
        for i in range(0, length, tile):
            rows, at = min(tile, length - i), base_q + i * step
            ends = min(i + tile, count) if causal else count
            _turn(q, at, step, rows, dim, tile, gains[0], columns)
            _turn(g, at, step, rows, dim, tile, one, slopes)
            for r in range(rows):
                inner, row = zeros(q), at + r * step
                for d in range(row, row + dim, n):
                    inner = fma(load(g, d), load(out, d), inner)
                mean[r] = total(inner)
                top[r] = lse[(b * length + i + r) * heads + head]
            for j in range(0, ends, 4):
                _product(near_k, j * dim, dim, 1, columns, 0, tile, dim,
                         p, j * tile, tile, False)  # fmt: skip
                _product(near_v, j * dim, dim, 1, slopes, 0, tile, dim,
                         ds, j * tile, tile, False)  # fmt: skip
            if causal:
                _hide_future(p, tile, i, ends, q.dtype.type(-np.inf))
            m0, m1, c0, c1 = load(top, 0), load(top, n), load(mean, 0), load(mean, n)
            for j in range(0, ends * tile, tile):
                e0, e1 = exp2(minus(load(p, j), m0)), exp2(minus(load(p, j + n), m1))
                store(p, j, e0)
                store(p, j + n, e1)
                store(ds, j, times(e0, minus(load(ds, j), c0)))
                store(ds, j + n, times(e1, minus(load(ds, j + n), c1)))
            for d in range(0, dim, 4):
                _product(near_k, d, 1, dim, ds, 0, tile, ends, mixed, d * tile, tile, False)
            _turn_back(mixed, rows, dim, tile, dq, at, step, gain)
            for j in range(0, ends, 4):
                for d in range(0, wide, tile):
                    _product(p, j * tile, tile, 1, g, at + d, step, rows,
                             sum_v, j * dim + d, dim, True)  # fmt: skip
                    _product(ds, j * tile, tile, 1, q, at + d, step, rows,
                             sum_k, j * dim + d, dim, True)  # fmt: skip
            if wide < dim:
                for j in range(0, ends, 8):
                    _column_product(p, j * tile, tile, g, at + wide, step, rows,
                                    sum_v, j * dim + wide, dim)  # fmt: skip
                    _column_product(ds, j * tile, tile, q, at + wide, step, rows,
                                    sum_k, j * dim + wide, dim)  # fmt: skip
        _scatter(sum_k, index, count, keys, dim, dk, base_k, step, gains[1])
        _scatter(sum_v, index, count, keys, dim, dv, base_k, step, one)


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
