"""Energies of a field: how rough it is, how much there is, and at which frequencies.

E(u) = ½ Σ_e ‖(Gu)_e‖²        the Dirichlet energy: half the squared slope
m(u) = Σ_i u_i                the mass
ρ(u) = ‖Lu‖ / ‖u‖             the roughness: what one diffusion step would move
‖u‖² = Σ_b E_b(u)             split into frequency bands by the cosine transform
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.linalg import vector_norm

from depthpde.errors import check_field, check_mask, check_positive
from depthpde.operators.boundary import Boundary
from depthpde.operators.laplacian import difference, laplacian
from depthpde.shapes import Edges, Field, Mask, PerEdge


def dirichlet_energy(
    u: Field,
    *,
    edges: Edges | None = None,
    weights: PerEdge | None = None,
    boundary: Boundary = Boundary.NO_FLUX,
    dilation: int = 1,
) -> Tensor:
    """Measure half the squared slope of the field.

        E(u) = ½ Σ_e w_e ‖u_j − u_i‖²  =  −½ ⟨u, L_w u⟩,    e = (i, j = i + δ)

    Never rises under explicit diffusion with 0 ≤ r ≤ 1/2. Under a conductance r_e on each edge
    the energy that never rises is the weighted one, w = r.

    Args:
        u: The field.
        edges: True where an edge is open, from `open_edges`; None for all.
        weights: Conductance of each edge, [batch | 1, edges, dim | 1]; None for ones.
        boundary: What the ends see.
        dilation: Distance δ between neighbours.

    Returns:
        [batch], summed over sites and features.
    """
    squared = difference(check_field("u", u), boundary, dilation).square()
    if edges is not None:
        squared = squared * edges[..., None]
    if weights is not None:
        squared = squared * weights
    return 0.5 * squared.sum(dim=(1, 2))


def mass(u: Field, *, valid_mask: Mask | None = None) -> Tensor:
    """Count how much there is of each feature.

        m = Σ_i u_i        over real tokens

    Conserved by diffusion under no-flux and periodic ends.

    Returns:
        [batch, dim].
    """
    check_field("u", u)
    if valid_mask is not None:
        u = u * check_mask("valid_mask", valid_mask, u)[..., None]
    return u.sum(dim=1)


def roughness(u: Field, *, edges: Edges | None = None) -> Tensor:
    """Measure how far one diffusion step would move the field, per unit of ratio and of field.

        ρ(u) = ‖Lu‖ / ‖u‖  ∈ [0, 4],      ‖D_r u − u‖ = r ρ(u) ‖u‖

    0 for a constant field (and for the zero field), towards 4 for signs that alternate.

    Returns:
        [batch].
    """
    moved: Tensor = vector_norm(laplacian(check_field("u", u), edges=edges), dim=(1, 2))
    size: Tensor = vector_norm(u, dim=(1, 2))
    return moved / size.masked_fill(size == 0, 1.0)


def cosine_transform(u: Field) -> Field:
    """Expand the field in the Laplacian's no-flux eigenvectors.

        û_k = c_k Σ_i u_i cos(πk(i + ½)/n),    c_0 = √(1/n),  c_k = √(2/n)

    Orthonormal: ‖û‖ = ‖u‖. O(n log n), by the Fourier transform of the even extension.

    Returns:
        [batch, modes, dim], from the smoothest mode to the roughest.
    """
    length = u.shape[1]
    mode = torch.arange(length, device=u.device, dtype=u.dtype)[:, None]
    spectrum: Tensor = torch.fft.rfft(torch.cat([u, u.flip(1)], dim=1), dim=1)[:, :length]
    half_site = torch.polar(torch.ones_like(mode), -math.pi * mode / (2 * length))
    weight = torch.full_like(mode, (2 / length) ** 0.5)
    weight[0] = (1 / length) ** 0.5
    shifted: Tensor = (spectrum * half_site).real
    expanded: Tensor = 0.5 * weight * shifted
    return expanded


def band_energies(u: Field, *, num_bands: int = 4) -> Tensor:
    """Split the squared size of the field into frequency bands of equal width.

        E_b = Σ_{k ∈ band b} ‖û_k‖²,    band b holds  b/B ≤ k/n < (b + 1)/B,    Σ_b E_b = ‖u‖²

    For whole sequences under no-flux ends; cut padding off first.

    Args:
        u: The field.
        num_bands: B.

    Returns:
        [batch, bands], from low frequency to high.
    """
    check_field("u", u)
    check_positive("num_bands", num_bands)
    per_mode = cosine_transform(u).square().sum(dim=2)
    length = u.shape[1]
    band = torch.arange(length, device=u.device) * num_bands // length
    return per_mode.new_zeros(u.shape[0], num_bands).index_add(1, band, per_mode)
