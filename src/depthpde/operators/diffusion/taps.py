"""Several equal steps as one filter.

    (1 + r(σ + σ⁻¹ − 2))^s = Σ_m Bern_m^s(2r) ((σ + σ⁻¹)/2)^m        explicit, σ the shift by a site
    (1 − r + rσ)^s         = Σ_m Bern_m^s(r) σ^m                     upwind

with Bernstein's Bern_m^s(q) = C(s, m) q^m (1 − q)^{s−m}. Every term is positive inside the bounds
of the ratio, so nothing cancels at any number of steps; taps sum to 1. They are made in float64
by torch operations, differentiable in every mode.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


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
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return _mix(ratios, weights, steps, causal)
    taps: Tensor = _Mix.apply(ratios, weights, steps, causal)  # type: ignore[no-untyped-call]
    return taps


def _mix(ratios: Tensor, weights: Tensor, steps: tuple[int, ...], causal: bool) -> Tensor:
    total = ratios.new_zeros(1, 1, 1, dtype=torch.float64)
    for ratio, weight, count in zip(ratios, weights.double(), steps, strict=True):
        taps = heat_taps(ratio[None, None], count, causal=causal)
        total = total + weight * pad_taps(taps, max(steps), causal=causal)
    return total


class _Mix(torch.autograd.Function):
    """Make the taps again in the backward: kept, they would outweigh a short field."""

    @staticmethod
    def forward(
        ctx: Any, ratios: Tensor, weights: Tensor, steps: tuple[int, ...], causal: bool
    ) -> Tensor:
        ctx.save_for_backward(ratios, weights)
        ctx.steps, ctx.causal = steps, causal
        return _mix(ratios, weights, steps, causal)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        def run(ratios: Tensor, weights: Tensor) -> Tensor:
            return _mix(ratios, weights, ctx.steps, ctx.causal)

        return (*torch.func.vjp(run, *ctx.saved_tensors)[1](grads[0]), None, None)


def pad_taps(taps: Tensor, reach: int, *, causal: bool = False) -> Tensor:
    """Add zeros on the outside, so that the taps reach as far as asked."""
    if causal:
        return F.pad(taps, (0, 0, reach + 1 - taps.shape[1], 0))
    missing = reach - taps.shape[1] // 2
    return F.pad(taps, (0, 0, missing, missing))


def _tables(steps: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Give m, C(s, m) and the chance that m steps of a symmetric walk end k sites away."""
    order = range(steps + 1)
    walks = [
        [math.comb(m, (m + k) // 2) / 2**m if k <= m and (m + k) % 2 == 0 else 0.0 for m in order]
        for k in order
    ]
    column = torch.tensor(list(order), dtype=torch.float64, device=device)[:, None]
    choose = [float(math.comb(steps, m)) for m in order]
    return (
        column,
        torch.tensor(choose, dtype=torch.float64, device=device)[:, None],
        torch.tensor(walks, dtype=torch.float64, device=device),
    )


_kept_tables = lru_cache(maxsize=64)(_tables)
