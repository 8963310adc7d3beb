"""R: pointwise maps. Every site reacts by itself; nothing passes between sites.

    u_t = R(u)

Where a reaction is minus the slope of a potential, the potential stands beside it:

    R(u) = −V′(u)        so  dV/dt = −R(u)² ≤ 0  along the flow

A feed-forward network has no potential unless its two matrices are transposes of each other.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from depthpde.operators import fused_gelu
from depthpde.operators.linear_map import linear_map
from depthpde.shapes import Field


def feed_forward(
    u: Field,
    weight_in: Tensor,
    bias_in: Tensor | None,
    weight_out: Tensor,
    bias_out: Tensor | None,
    *,
    activation: Callable[[Tensor], Tensor] = functional.gelu,
) -> Field:
    """React by a two-layer network, the same at every site.

        R(u) = W_out σ(W_in u + b_in) + b_out

    Args:
        u: The field.
        weight_in: [hidden, dim].
        bias_in: [hidden] or None.
        weight_out: [dim, hidden].
        bias_out: [dim] or None.
        activation: σ.
    """
    if activation is functional.gelu and bias_in is not None:
        hidden = _linear_gelu(u, weight_in, bias_in)
    else:
        hidden = activation(linear_map(u, weight_in, bias_in))
    return linear_map(hidden, weight_out, bias_out)


def _linear_gelu(u: Field, weight: Tensor, bias: Tensor) -> Field:
    if fused_gelu.supports(u, weight, bias):
        return fused_gelu.linear_gelu(u, weight, bias)
    return functional.gelu(linear_map(u, weight, bias))


def linear(u: Field, rate: float = 1.0) -> Field:
    """Grow or decay in proportion.

    R(u) = rate · u,    u(t) = u(0) e^{rate · t}
    """
    return rate * u


def linear_potential(u: Field, rate: float = 1.0) -> Field:
    """Give the potential of `linear` at every site.

    V(u) = −½ rate · u²
    """
    return -0.5 * rate * u.square()


def fisher_kpp(u: Field, rate: float = 1.0) -> Field:
    """Grow logistically.

        R(u) = rate · u (1 − u)

    Rest states 0 (unstable) and 1 (stable); a negative value runs away to −∞ in finite time.
    """
    return rate * u * (1 - u)


def fisher_kpp_potential(u: Field, rate: float = 1.0) -> Field:
    """Give the potential of `fisher_kpp` at every site.

    V(u) = rate · (u³/3 − u²/2)
    """
    return rate * (u.pow(3) / 3 - u.square() / 2)


def allen_cahn(u: Field, rate: float = 1.0) -> Field:
    """Fall into one of two wells.

        R(u) = rate · (u − u³)

    Rest states −1 and 1 (stable) and 0 (unstable); bounded for every start.
    """
    return rate * (u - u.pow(3))


def allen_cahn_potential(u: Field, rate: float = 1.0) -> Field:
    """Give the double well of `allen_cahn` at every site.

    V(u) = ¼ rate · (1 − u²)²
    """
    return 0.25 * rate * (1 - u.square()).square()


def zeldovich(u: Field, rate: float = 1.0) -> Field:
    """Ignite: hardly any growth near 0, logistic near 1.

        R(u) = rate · u² (1 − u)

    Rest states 0 (half-stable) and 1 (stable).
    """
    return rate * u.square() * (1 - u)


def zeldovich_potential(u: Field, rate: float = 1.0) -> Field:
    """Give the potential of `zeldovich` at every site.

    V(u) = rate · (u⁴/4 − u³/3)
    """
    return rate * (u.pow(4) / 4 - u.pow(3) / 3)
