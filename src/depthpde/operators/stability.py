"""Bounds on the ratio, and the free parameter that can never leave them.

    r = α dt / dx²        explicit: stable while r ≤ 1/2, no mode changes sign while r ≤ 1/4

A scheme is what one step of time is; which code computes it is a `Method` (see `diffusion`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from depthpde.errors import check_range


class Scheme(StrEnum):
    """What one step in time does to the field, with D = I + rL.

    >>> layer = dp.Diffusion(16, scheme=dp.Scheme.EXACT)   # or scheme="exact"
    """

    EXPLICIT = "explicit"
    """u ← (I + rL) u. First order."""
    BACKWARD_EULER = "backward_euler"
    """u ← (I − rL)⁻¹ u. First order, stable for every r, keeps every mode's sign."""
    CRANK_NICOLSON = "crank_nicolson"
    """u ← (I − ½rL)⁻¹ (I + ½rL) u. Second order, stable for every r."""
    EXACT = "exact"
    """u ← exp(rL) u. The semigroup itself."""
    UPWIND = "upwind"
    """u_i ← (1 − r) u_i + r u_{i−1}. Causal: a site never sees its future."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large the ratio of a scheme may be."""

    stable: float
    """Beyond this some field grows."""
    sign: float
    """Up to this no mode changes its sign."""


BOUNDS = {
    Scheme.EXPLICIT: Bounds(stable=1 / 2, sign=1 / 4),
    Scheme.BACKWARD_EULER: Bounds(stable=math.inf, sign=math.inf),
    Scheme.CRANK_NICOLSON: Bounds(stable=math.inf, sign=1 / 2),
    Scheme.EXACT: Bounds(stable=math.inf, sign=math.inf),
    Scheme.UPWIND: Bounds(stable=1.0, sign=1 / 2),
}


def ratio_bounds(scheme: Scheme, dimensions: int = 1) -> Bounds:
    """Give the bounds on the ratio of a scheme in one or two dimensions.

        explicit in d dimensions: the largest |λ| is 4d, so r ≤ 1/(2d) and r ≤ 1/(4d)

    Args:
        scheme: What one step does.
        dimensions: 1 along a sequence, 2 over an image.
    """
    bounds = BOUNDS[scheme]
    return Bounds(stable=bounds.stable / dimensions, sign=bounds.sign / dimensions)


def multiplier(
    scheme: Scheme, ratio: Tensor, omega: Tensor, *, steps: int = 1, dilation: int = 1
) -> Tensor:
    """Give the transfer function of a scheme: what it multiplies the wave e^{iωx} with.

        s = 4 sin²(δω/2)
        explicit (1 − rs)^n    backward Euler (1 + rs)^−n    exact e^{−nrs}
        Crank–Nicolson ((1 − rs/2)/(1 + rs/2))^n    upwind (1 − r + r e^{−iδω})^n

    Args:
        scheme: What one step does.
        ratio: [dim] or a scalar.
        omega: Angular frequencies in radians per site, [modes].
        steps: Number of steps n.
        dilation: Distance δ between neighbours.

    Returns:
        [modes, dim], complex; the imaginary part is zero for every scheme but upwind.
    """
    omega, ratio = omega.reshape(-1, 1), ratio.reshape(1, -1).to(omega.dtype)
    rs = 4 * ratio * torch.sin(dilation * omega / 2) ** 2
    if scheme is Scheme.EXPLICIT:
        one = (1 - rs) + 0j
    elif scheme is Scheme.BACKWARD_EULER:
        one = 1 / (1 + rs) + 0j
    elif scheme is Scheme.CRANK_NICOLSON:
        one = (1 - rs / 2) / (1 + rs / 2) + 0j
    elif scheme is Scheme.EXACT:
        one = torch.exp(-rs) + 0j
    else:
        one = 1 - ratio + ratio * torch.exp(-1j * dilation * omega)
    return one**steps


def check_ratio(ratio: Tensor, scheme: Scheme, dimensions: int = 1) -> Tensor:
    """Return a ratio inside its stability bound, or say what is wrong with it."""
    if ratio.numel() == 0:
        return ratio
    ends = torch.aminmax(_plain(ratio.detach()))
    low, high = ends.min.item(), ends.max.item()
    for end in (low, high):
        if not math.isfinite(end):
            name = "NaN" if math.isnan(end) else f"{end:g}"
            raise ValueError(
                f"`ratio` must be finite, got {name}; check the parameter it is made from"
            )
    stable = BOUNDS[scheme].stable / dimensions
    if low < 0 or high > stable * (1 + 1e-6):
        bound = f"[0, {stable:g}]" if math.isfinite(stable) else "[0, ∞)"
        got = low if low < 0 else high
        raise ValueError(
            f"`ratio` must lie in {bound} for the {scheme.value} scheme, got {got:g}; "
            "use a smaller ratio with more steps, or the backward_euler or exact scheme"
        )
    return ratio


def _plain(ratio: Tensor) -> Tensor:
    """Take the wrappings of ``torch.func`` off, so that the numbers themselves can be read."""
    while torch._C._functorch.is_functorch_wrapped_tensor(ratio):
        ratio = torch._C._functorch.get_unwrapped(ratio)
    return ratio


def ratio_from_free(theta: Tensor, bound: float) -> Tensor:
    """Map a free parameter into the open interval (0, bound).

    r = bound · sigmoid(θ)
    """
    return bound * torch.sigmoid(theta)


def free_from_ratio(ratio: float, bound: float) -> float:
    """Invert `ratio_from_free`.

    θ = log(r / (bound − r))
    """
    edge = 1e-6 * bound
    check_range("ratio", ratio, edge, bound - edge, advice="the sigmoid never reaches its ends")
    return math.log(ratio / (bound - ratio))


def ratio_from_projection(theta: Tensor, bound: float) -> Tensor:
    """Project a free parameter onto the closed interval [0, bound].

        r = min(max(θ, 0), bound),    ∂r/∂θ = 1

    The gradient passes straight through, so a ratio that starts at exactly 0 (the identity)
    learns from its first update, and one that was pushed against an end can come back.
    """
    return theta.detach().clamp(0.0, bound) + (theta - theta.detach())
