"""Several equal steps as one filter.

    (1 + r(σ + σ⁻¹ − 2))^s = Σ_m Bern_m^s(2r) ((σ + σ⁻¹)/2)^m        explicit, σ the shift by a site
    (1 − r + rσ)^s         = Σ_m Bern_m^s(r) σ^m                     upwind

with Bernstein's Bern_m^s(q) = C(s, m) q^m (1 − q)^{s−m}. Every term is positive inside the bounds
of the ratio, so nothing cancels at any number of steps; taps sum to 1. They are made in float64
by torch operations, differentiable in every mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional as F

from depthpde.operators.diffusion.problem import device_module, on_gpu


def heat_taps(ratio: Tensor, steps: int, *, causal: bool = False) -> Tensor:
    """Give the taps of some equal steps, [batch, 2·steps + 1, dim], or [batch, steps + 1, dim].

    Args:
        ratio: r of one step, [batch | 1, 1, dim | 1].
        steps: Number of steps.
        causal: Upwind steps; the last tap is then the site's own.
    """
    q = ratio.double() if causal else 2 * ratio.double()
    tables = _tables if torch.compiler.is_compiling() else _kept_tables
    order, choose, walks = tables(steps, ratio.device)
    shares = choose * q**order * (1 - q) ** (steps - order)
    if causal:
        return shares.flip(1)
    half = walks @ shares  # from the centre outwards
    return torch.cat((half[:, 1:].flip(1), half), dim=1)


def mixed_taps(ratios: Tensor, weights: Tensor, steps: tuple[int, ...], causal: bool) -> Tensor:
    """Give the taps of a weighted sum of scales, [1, taps, dim]; backward keeps nothing else.

        Σ_k w_k D(r_k)^{s_k}

    Args:
        ratios: r of every scale and feature, [scales, dim].
        weights: w of every scale, [scales].
        steps: s of every scale.
        causal: Upwind steps.
    """
    transformed = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if transformed or forward_ad._current_level >= 0:
        return _mix(ratios, weights, steps, causal)
    if on_gpu(ratios):
        return device_module("taps").mixed_taps(ratios, weights, steps, causal)
    if ratios.device.type != "cpu":
        return _mix(ratios, weights, steps, causal)
    taps: Tensor = _Mix.apply(ratios, weights, steps, causal)  # type: ignore[no-untyped-call]
    return taps


def scale_taps(ratios: Tensor, steps: tuple[int, ...], *, causal: bool) -> Tensor:
    """Give the taps of every scale, centred on one site, [scales, taps, dim], in float64.

    Args:
        ratios: r of every scale and feature, [scales, dim].
        steps: Number of steps of every scale.
        causal: Upwind steps.
    """
    one, longest = ratios.new_ones(1), max(steps)
    each = (
        pad_taps(mixed_taps(ratios[k : k + 1], one, (count,), causal), longest, causal=causal)
        for k, count in enumerate(steps)
    )
    return torch.cat(tuple(each))


def _mix(ratios: Tensor, weights: Tensor, steps: tuple[int, ...], causal: bool) -> Tensor:
    total = ratios.new_zeros(1, 1, 1, dtype=torch.float64)
    for ratio, weight, count in zip(ratios, weights.double(), steps, strict=True):
        taps = heat_taps(ratio[None, None], count, causal=causal)
        total = total + weight * pad_taps(taps, max(steps), causal=causal)
    return total


class _Mix(torch.autograd.Function):
    """Make the taps in numpy, and again in the backward: they keep nothing and cost little.

    ∂Bern_m^s/∂q = s (Bern_{m−1}^{s−1} − Bern_m^{s−1})
    """

    @staticmethod
    def forward(
        ctx: Any, ratios: Tensor, weights: Tensor, steps: tuple[int, ...], causal: bool
    ) -> Tensor:
        """Sum the scales' taps."""
        ctx.save_for_backward(ratios, weights)
        ctx.steps, ctx.causal = steps, causal
        total = np.zeros((1, _count(max(steps), causal), ratios.shape[1]))
        for ratio, weight, count in _plain(ratios, weights, steps):
            shares = _shares(ratio if causal else 2 * ratio, count)
            total[0, _inner(max(steps), count, causal)] += weight * _unfold(shares, count, causal)
        return torch.from_numpy(total)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Send the gradient of the taps to every ratio and weight."""
        ratios, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # it will be differentiated once more
            return (*pull_by_torch(ctx, grads[0]), None, None)
        grad = grads[0].detach().numpy()[0]
        by_ratio, by_weight = np.empty(ratios.shape), np.empty(weights.shape)
        for k, (ratio, weight, count) in enumerate(_plain(ratios, weights, ctx.steps)):
            mine = _fold(grad[_inner(max(ctx.steps), count, ctx.causal)], count, ctx.causal)
            q = ratio if ctx.causal else 2 * ratio
            by_weight[k] = (mine * _shares(q, count)).sum()
            fewer = np.zeros((count + 2, len(q)))
            fewer[1:-1] = _shares(q, count - 1)
            slope = (mine * (fewer[:-1] - fewer[1:])).sum(axis=0)
            by_ratio[k] = weight * count * (1 if ctx.causal else 2) * slope
        found = torch.from_numpy(by_ratio), torch.from_numpy(by_weight)
        return found[0].to(ratios.dtype), found[1].to(weights.dtype), None, None


def pull_by_torch(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Send the gradient of the taps to ratios and weights by torch operations."""

    def run(ratios: Tensor, weights: Tensor) -> Tensor:
        return _mix(ratios, weights, ctx.steps, ctx.causal)

    grads: tuple[Tensor, Tensor] = torch.func.vjp(run, *ctx.saved_tensors)[1](grad)
    return grads


def _plain(
    ratios: Tensor, weights: Tensor, steps: tuple[int, ...]
) -> Iterator[tuple[NDArray[np.float64], float, int]]:
    """Give ratio, weight and steps of every scale as plain numbers."""
    rows = ratios.detach().double().numpy()
    return zip(rows, weights.detach().double().tolist(), steps, strict=True)


def _shares(q: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Give Bern_m^s(q), [s + 1, dim]."""
    powers = np.empty((2, steps + 1, len(q)))
    powers[:, 0] = 1
    powers[0, 1:], powers[1, 1:] = q, 1 - q
    up, down = np.multiply.accumulate(powers, axis=1)
    shares: NDArray[np.float64] = _kept_numbers(steps)[0] * up * down[::-1]
    return shares


def _unfold(shares: NDArray[np.float64], steps: int, causal: bool) -> NDArray[np.float64]:
    """Turn shares into taps."""
    if causal:
        return shares[::-1]
    half = _kept_numbers(steps)[1] @ shares
    return np.concatenate((half[:0:-1], half))


def _fold(grad: NDArray[np.float64], steps: int, causal: bool) -> NDArray[np.float64]:
    """Turn a gradient of taps into one of shares: the transpose of `_unfold`."""
    if causal:
        return grad[::-1]
    half = grad[steps:].copy()
    half[1:] += grad[:steps][::-1]
    folded: NDArray[np.float64] = _kept_numbers(steps)[1].T @ half
    return folded


def _count(reach: int, causal: bool) -> int:
    return reach + 1 if causal else 2 * reach + 1


def _inner(reach: int, steps: int, causal: bool) -> slice:
    """Say where the taps of fewer steps stand among those that reach farther."""
    return slice(reach - steps, reach + 1 if causal else reach + steps + 1)


def pad_taps(taps: Tensor, reach: int, *, causal: bool = False) -> Tensor:
    """Add zeros on the outside, so that the taps reach as far as asked."""
    if causal:
        return F.pad(taps, (0, 0, reach + 1 - taps.shape[1], 0))
    missing = reach - taps.shape[1] // 2
    return F.pad(taps, (0, 0, missing, missing))


def _tables(steps: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Give m, C(s, m) and the chance that m steps of a symmetric walk end k sites away."""
    choose, walks = step_numbers(steps)
    order = torch.arange(steps + 1, dtype=torch.float64, device=device)[:, None]
    return (
        order,
        torch.tensor(choose, dtype=torch.float64, device=device)[:, None],
        torch.tensor(walks, dtype=torch.float64, device=device),
    )


def step_numbers(steps: int) -> tuple[list[float], list[list[float]]]:
    """Give C(s, m), and the chance that m steps of a symmetric walk end k sites away, [k][m]."""
    order = range(steps + 1)
    walks = [
        [math.comb(m, (m + k) // 2) / 2**m if k <= m and (m + k) % 2 == 0 else 0.0 for m in order]
        for k in order
    ]
    return [float(math.comb(steps, m)) for m in order], walks


_kept_tables = lru_cache(maxsize=64)(_tables)


@lru_cache(maxsize=64)
def _kept_numbers(steps: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    choose, walks = step_numbers(steps)
    return np.array(choose)[:, None], np.array(walks)
