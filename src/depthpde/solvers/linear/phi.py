"""The φ-functions: what a polynomial in time becomes under a linear flow.

    φ_0(z) = e^z        φ_k(z) = ∫_0^1 e^{(1−s)z} s^{k−1}/(k−1)! ds        φ_k(0) = 1/k!

    u′ = Lu + Σ_j p_j t^j/j!   →   u(h) = e^{hL} u_0 + h Σ_j h^j φ_{j+1}(hL) p_j,   exactly

The textbook recurrence φ_k = (φ_{k−1} − 1/(k−1)!) / z cancels near zero. So it is used only beyond
|z| = 4, where it loses nothing. Below, φ_K is a series of positive terms, and the recurrence runs
the other way.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SERIES_BELOW = 4.0
"""Up to this |z| the series is summed."""
SERIES_TERMS = 40
"""4^40 / 40! < 10⁻²³: what is left out is below rounding."""


def phi_functions(z: Tensor, highest: int) -> Tensor:
    """Evaluate φ_0 … φ_highest for decay rates z ≤ 0.

        |z| ≤ 4:   φ_K = e^{−x}/(K−1)! Σ_j x^j / (j! (K+j)),  x = −z;    φ_{k−1} = z φ_k + 1/(k−1)!
        |z| > 4:   φ_k = (φ_{k−1} − 1/(k−1)!) / z

    Every value is right to a few units of rounding; differentiable in z.

    Args:
        z: Rates times the step, none positive.
        highest: The largest k.

    Returns:
        [highest + 1, *z.shape].
    """
    if highest == 0:
        return torch.exp(z)[None]
    near = z >= -SERIES_BELOW
    inner = torch.where(near, z, 0.0)  # neither branch may meet what would overflow it: a NaN
    outer = torch.where(near, -SERIES_BELOW, z)  # in the branch not taken spoils the gradient
    below = [_series(-inner, highest)]
    for k in range(highest, 1, -1):
        below.append(inner * below[-1] + 1 / math.factorial(k - 1))
    above = [torch.exp(outer)]
    for k in range(1, highest + 1):
        above.append((above[-1] - 1 / math.factorial(k - 1)) / outer)
    found = [torch.where(near, b, a) for b, a in zip(reversed(below), above[1:], strict=True)]
    return torch.stack([torch.exp(z), *found])


def poisson_tails(tau: Tensor, sites: int, highest: int) -> Tensor:
    """Evaluate φ_0 … φ_highest of the upwind shift, as weights by distance.

        φ_k(τ(S − I)) = Σ_m w_m^{(k)} S^m
        w^{(0)} = Poisson(τ),    w_m^{(k)} = Σ_{j>m} w_j^{(k−1)} / τ

    S takes from the site before. Every weight is a sum of positive numbers, so none cancels.

    Args:
        tau: Rates times the step, [rates], none negative.
        sites: How many distances m are wanted, from 0.
        highest: The largest k.

    Returns:
        [highest + 1, rates, sites].
    """
    largest = float(tau.detach().max())
    reach = sites + highest + math.ceil(largest + 12 * math.sqrt(largest) + 40)
    j = torch.arange(reach, dtype=tau.dtype, device=tau.device)
    safe = tau.clamp_min(torch.finfo(tau.dtype).tiny ** 0.125)[:, None]
    weights = [torch.exp(j * safe.log() - safe - torch.lgamma(j + 1))]
    for _ in range(highest):
        tails = weights[-1].flip(1).cumsum(1).flip(1)
        weights.append(torch.nn.functional.pad(tails[:, 1:], (0, 1)) / safe)
    return torch.stack(weights)[:, :, :sites]


def _series(x: Tensor, k: int) -> Tensor:
    """Sum e^{−x}/(k−1)! Σ_j x^j/(j! (k+j)), whose terms are all positive for x ≥ 0."""
    j = torch.arange(1, SERIES_TERMS, dtype=x.dtype, device=x.device)
    terms = torch.cumprod(x[..., None] / j, dim=-1)
    return torch.exp(-x) * (1 / k + terms @ (1 / (k + j))) / math.factorial(k - 1)
