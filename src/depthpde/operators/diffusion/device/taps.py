"""The taps of equal steps, or of several scales of them, made on a GPU in one small launch.

    a_k = Σ_n T_{k,n} w_c q_c^m (1 − q_c)^{s−m},    n = (c, m):  m = 0 … s_c of every scale c

with q = 2r (upwind: r) and T the constants of `taps`: binomials, and walks of m steps that end k
sites away. Only positive terms are summed, in float64. Backward is one small launch too:

    ∂q_c = w_c Σ_m p_n (m q^{m−1} (1 − q)^{s−m} − (s − m) q^m (1 − q)^{s−m−1}),    p = Tᵀ ∂a
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from depthpde.operators.diffusion.taps import pull_by_torch, step_numbers

FEATURES = 16


@triton.jit
def _power(q, m):
    """Give q^m, m not negative and a whole number for each row; 0⁰ = 1."""
    found = q * 0 + 1
    for t in range(tl.max(m, axis=0)):
        found = tl.where((t < m)[:, None], found * q, found)
    return found


@triton.jit
def _terms(ratio, weight, kinds, scales, dim, terms, d, DOUBLE: tl.constexpr, N: tl.constexpr):
    """Give scale, m, s, q and w of every term."""
    n = tl.arange(0, N)
    there = n < terms
    c = tl.load(kinds + 3 * n, mask=there, other=-1)
    m = tl.load(kinds + 3 * n + 1, mask=there, other=0)
    s = tl.load(kinds + 3 * n + 2, mask=there, other=0)
    at = c[:, None] * dim + d[None, :]
    q = tl.load(ratio + at, mask=there[:, None] & (d < dim)[None, :], other=0.0).to(tl.float64)
    w = tl.load(weight + c, mask=there, other=0.0).to(tl.float64)
    return c, m, s, q * 2 if DOUBLE else q, w[:, None]


@triton.jit
def make(
    ratio, weight, kinds, table, out, scales, dim, terms, reach,
    DOUBLE: tl.constexpr, N: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Make the taps of one row of ratios, by distance."""
    row, d = tl.program_id(1), tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)
    ratio, out = ratio + row * scales * dim, out + row * (reach + 1) * dim + d
    _, m, s, q, w = _terms(ratio, weight, kinds, scales, dim, terms, d, DOUBLE, N)
    share, n = w * _power(q, m) * _power(1 - q, s - m), tl.arange(0, N)
    for k in range(reach + 1):
        t = tl.load(table + k * terms + n, mask=n < terms, other=0.0)
        tap = tl.sum(t[:, None] * share, axis=0)
        tl.store(out + k * dim, tap.to(out.dtype.element_ty), mask=d < dim)


@triton.jit
def pull(
    grad, ratio, weight, kinds, table, by_ratio, by_weight, scales, dim, terms, reach,
    DOUBLE: tl.constexpr, N: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Send the gradient of the taps to every ratio, and to every weight feature by feature."""
    row, d = tl.program_id(1), tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)
    ratio, shift = ratio + row * scales * dim, row * scales * dim + d
    grad += row * (reach + 1) * dim + d
    c, m, s, q, w = _terms(ratio, weight, kinds, scales, dim, terms, d, DOUBLE, N)
    n, p = tl.arange(0, N), q * 0
    for k in range(reach + 1):
        t = tl.load(table + k * terms + n, mask=n < terms, other=0.0)
        p += t[:, None] * tl.load(grad + k * dim, mask=d < dim, other=0.0).to(tl.float64)[None, :]
    up, down, rest = _power(q, m), _power(1 - q, s - m), s - m
    slope = m[:, None] * _power(q, tl.maximum(m - 1, 0)) * down
    slope -= rest[:, None] * up * _power(1 - q, tl.maximum(rest - 1, 0))
    for each in range(scales):
        mine = (c == each)[:, None]
        found = tl.sum(tl.where(mine, p * w * slope, 0.0), axis=0) * (2 if DOUBLE else 1)
        tl.store(by_ratio + shift + each * dim, found, mask=d < dim)
        found = tl.sum(tl.where(mine, p * up * down, 0.0), axis=0)
        tl.store(by_weight + shift + each * dim, found, mask=d < dim)


def make_taps(
    ratio: Tensor, weight: Tensor, steps: tuple[int, ...], causal: bool, dtype: torch.dtype
) -> Tensor:
    """Make the taps of a weighted sum of scales, by distance, [rows, reach + 1, dim].

    Args:
        ratio: r of every row, scale and feature, [rows, scales, dim].
        weight: w of every scale, [scales].
        steps: s of every scale.
        causal: Upwind steps.
        dtype: What the taps are rounded to.
    """
    (rows, scales, dim), (kinds, table) = ratio.shape, _tables(steps, causal, ratio.device)
    out = torch.empty(rows, max(steps) + 1, dim, dtype=dtype, device=ratio.device)
    make[(triton.cdiv(dim, FEATURES), rows)](
        ratio.contiguous(), weight, kinds, table, out, scales, dim, len(kinds), max(steps),
        DOUBLE=not causal, N=triton.next_power_of_2(len(kinds)), FEATURES=FEATURES,
    )  # fmt: skip
    return out


def pull_taps(
    grad: Tensor, ratio: Tensor, weight: Tensor, steps: tuple[int, ...], causal: bool
) -> tuple[Tensor, Tensor]:
    """Give the gradients of ratios and weights in float64, [rows, scales, dim] and [scales]."""
    (rows, scales, dim), (kinds, table) = ratio.shape, _tables(steps, causal, ratio.device)
    found = torch.empty(2, rows, scales, dim, dtype=torch.float64, device=ratio.device)
    pull[(triton.cdiv(dim, FEATURES), rows)](
        grad.contiguous(), ratio.contiguous(), weight, kinds, table, found[0], found[1],
        scales, dim, len(kinds), max(steps),
        DOUBLE=not causal, N=triton.next_power_of_2(len(kinds)), FEATURES=FEATURES,
    )  # fmt: skip
    return found[0], found[1].sum(dim=(0, 2))


def mixed_taps(ratios: Tensor, weights: Tensor, steps: tuple[int, ...], causal: bool) -> Tensor:
    """Give the taps of a weighted sum of scales from the farthest past on; see `taps`."""
    half: Tensor = MixTaps.apply(ratios, weights, steps, causal)  # type: ignore[no-untyped-call]
    return half.flip(1) if causal else torch.cat((half[:, 1:].flip(1), half), dim=1)


class MixTaps(torch.autograd.Function):
    """Make the taps of a mix, and again in the backward: nothing is kept but ratios and weights."""

    @staticmethod
    def forward(
        ctx: Any, ratios: Tensor, weights: Tensor, steps: tuple[int, ...], causal: bool
    ) -> Tensor:
        """Make the taps, [1, reach + 1, dim], in float64."""
        ctx.save_for_backward(ratios, weights)
        ctx.steps, ctx.causal = steps, causal
        return make_taps(ratios[None], weights, steps, causal, torch.float64)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Send the gradient of the taps to every ratio and weight."""
        ratios, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # it will be differentiated once more
            whole = grads[0].flip(1) if ctx.causal else F.pad(grads[0], (0, 0, max(ctx.steps), 0))
            return (*pull_by_torch(ctx, whole), None, None)
        found = pull_taps(grads[0], ratios[None], weights, ctx.steps, ctx.causal)
        return found[0][0].to(ratios.dtype), found[1].to(weights.dtype), None, None


@lru_cache(maxsize=64)
def _tables(steps: tuple[int, ...], causal: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """Give scale, m and s of every term, and T, [reach + 1, terms]."""
    kinds = [(c, m, s) for c, s in enumerate(steps) for m in range(s + 1)]
    table = torch.zeros(max(steps) + 1, len(kinds), dtype=torch.float64)
    for n, (_, m, s) in enumerate(kinds):
        choose, walks = step_numbers(s)
        for k in range(s + 1):
            table[k, n] = choose[m] * ((k == m) if causal else walks[k][m])
    return torch.tensor(kinds, dtype=torch.int32, device=device), table.to(device)
