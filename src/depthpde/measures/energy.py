"""Energy: does the field get smoother along its sequence with depth, and is diffusion stable?

    Dirichlet energy     E(u) = ½ Σ ‖u_{i+1} − u_i‖²    between real tokens that are neighbours
    smoothness quotient  q(u) = E(u) / ‖u − ū‖²          1 for unrelated tokens, 0 for one slope
    CFL margin           1 − max r / r_stable            negative: the step amplifies

E falls when all tokens shrink or collapse alike; q falls only when neighbours become alike before
the rest does, which is what over-smoothing means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm

from depthpde.layers.diffusion import AdaptiveDiffusion, Diffusion
from depthpde.layers.multiscale import MultiscaleDiffusion
from depthpde.measures.tokens import num_tokens, real_field
from depthpde.operators.boundary import open_edges
from depthpde.operators.energy import dirichlet_energy
from depthpde.operators.stability import ratio_bounds
from depthpde.shapes import Field, Mask


def dirichlet(u: Field, valid_mask: Mask | None = None) -> Tensor:
    """Measure half the squared slope between neighbouring real tokens, per token.

        E(u) / n,    E(u) = ½ Σ ‖u_{i+1} − u_i‖²

    Args:
        u: The field.
        valid_mask: True = real token.

    Returns:
        [batch]; NaN where a sequence is padding alone.
    """
    u = real_field("u", u, valid_mask)
    edges = open_edges(u, valid_mask=valid_mask)
    count = num_tokens(u, valid_mask)
    return dirichlet_energy(u, edges=edges) / torch.where(count > 0, count, torch.nan)


def smoothness_quotient(u: Field, valid_mask: Mask | None = None) -> Tensor:
    """Measure how rough the field is, against how much it varies at all.

        q = E(u) / ‖u − 1ūᵀ‖²  ∈ [0, 2]

    About 1 for tokens without relation, towards 0 as neighbours become alike, towards 2 where
    signs alternate. Unchanged by any gain and any shift of the field.

    Returns:
        [batch]; NaN for fewer than two tokens and for a constant sequence.
    """
    u = real_field("u", u, valid_mask)
    count = num_tokens(u, valid_mask)
    mean = u.sum(dim=1, keepdim=True) / count[:, None, None]
    apart = u - mean if valid_mask is None else (u - mean) * valid_mask[..., None]
    spread = vector_norm(apart, dim=(1, 2)).square()
    size = vector_norm(u, dim=(1, 2)).square()
    varies = spread > (64 * torch.finfo(u.dtype).eps) ** 2 * size
    energy = dirichlet(u, valid_mask) * count
    return torch.where(varies, energy / torch.where(varies, spread, 1.0), torch.nan)


def field_size(u: Field, valid_mask: Mask | None = None) -> Tensor:
    """Measure how large the entries of the field are: their root mean square.

        ‖u‖ / √(n dim)

    Returns:
        [batch]; NaN where a sequence is padding alone.
    """
    u = real_field("u", u, valid_mask)
    entries = num_tokens(u, valid_mask) * u.shape[2]
    size: Tensor = vector_norm(u, dim=(1, 2))
    return size / torch.where(entries > 0, entries, torch.nan).sqrt()


def peak(u: Field, valid_mask: Mask | None = None) -> Tensor:
    """Find the largest entry of each sequence.

        max |u|

    Returns:
        [batch]; NaN where a sequence is padding alone.
    """
    count = num_tokens(u, valid_mask)
    largest = real_field("u", u, valid_mask).abs().amax(dim=(1, 2))
    return torch.where(count > 0, largest, torch.nan)


def prominence(u: Field, valid_mask: Mask | None = None) -> Tensor:
    """Measure how far the largest entry stands out: massive activations are past a thousand.

        max |u| / median |u|

    Returns:
        [1], over the whole batch; NaN where the median is zero.
    """
    u = real_field("u", u, valid_mask)
    tokens = u.flatten(0, 1) if valid_mask is None else u[valid_mask]
    if not tokens.numel():
        return tokens.new_full((1,), torch.nan)
    size = tokens.abs()
    middle = size.flatten().median()
    return torch.where(middle > 0, size.max() / middle, torch.nan)[None]


def rises(energies: Sequence[float], *, slack: float = 1e-6) -> list[int]:
    """List the depths at which an energy is greater than one depth before."""
    pairs = enumerate(pairwise(energies), start=1)
    return [depth for depth, (before, after) in pairs if after > before * (1 + slack)]


def cfl_margin(layer: nn.Module) -> float:
    """Measure how far a diffusion layer is from amplifying.

        1 − max r / r_stable        1: r = 0;  0: at the bound;  negative: some mode grows

    A negative ratio runs heat backwards, which amplifies however small it is: its margin is
    r / r_stable. 1 where the scheme is stable for every ratio.

    Args:
        layer: One of our diffusion layers.
    """
    if isinstance(layer, MultiscaleDiffusion):
        return min(cfl_margin(each) for each in layer.members)
    if not isinstance(layer, Diffusion | AdaptiveDiffusion):
        raise ValueError(
            f"`layer` must be a diffusion layer, got {type(layer).__name__}; "
            "other layers have no ratio to be bounded"
        )
    dimensions = 1 if getattr(layer, "grid", None) is None else 2
    stable = ratio_bounds(layer.problem.scheme, dimensions).stable
    ratio = layer.ratio.detach().double()
    if not ratio.isfinite().all():
        return -math.inf
    low, high = float(ratio.min()), float(ratio.max())
    if low < 0:
        return low / stable if math.isfinite(stable) else -math.inf
    return 1 - high / stable


def diffusion_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Find the diffusion layers of a model by name, each once: a multiscale layer is one."""
    found: dict[str, nn.Module] = {}
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in found)
        if isinstance(module, MultiscaleDiffusion | Diffusion | AdaptiveDiffusion) and not inside:
            found[name] = module
    return found
