"""The linear term as something whose exponential can be applied.

u′ = Lu + N(u, t)        e^{hL} and every φ_k(hL), exactly

none       L = 0                        φ_k = 1/k!: the exponential methods become the plain ones
modes      L = Q diag(λ) Qᵀ             no-flux: cosines; fixed: sines; periodic: both; over an
                                        image: their products; masks and segments: the
                                        tridiagonal eigenproblem of each piece
upwind     L = c (S − I)                not normal, so no modes: weights by distance
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from depthpde.operators.boundary import Boundary
from depthpde.operators.laplacian import eigenvalues, eigenvectors, laplacian_matrix
from depthpde.shapes import Edges, Field, Mask
from depthpde.solvers.linear.phi import phi_functions, poisson_tails


class Generator(Protocol):
    """A linear operator on fields, seen in coordinates where its functions are cheap."""

    def enter(self, u: Field) -> Tensor:
        """Give the coordinates of a field; keeps its norm."""
        ...

    def leave(self, v: Tensor) -> Field:
        """Give the field of coordinates."""
        ...

    def rate(self, v: Tensor) -> Tensor:
        """Apply L to coordinates."""
        ...

    def phis(self, h: float, highest: int) -> Tensor:
        """Stack φ_0(hL) … φ_highest(hL), to be combined linearly and given to `act`."""
        ...

    def act(self, weights: Tensor, v: Tensor) -> Tensor:
        """Apply combined φ-functions to coordinates; leading axes broadcast."""
        ...


class Nothing:
    """No linear term at all.

    φ_k(0) = 1/k!
    """

    def enter(self, u: Field) -> Tensor:
        """Return the field itself."""
        return u

    def leave(self, v: Tensor) -> Field:
        """Return the field itself."""
        return v

    def rate(self, v: Tensor) -> Tensor:
        """Return zero."""
        return torch.zeros_like(v)

    def phis(self, h: float, highest: int) -> Tensor:
        """Stack 1/k!."""
        k = torch.arange(highest + 1, dtype=torch.float64)
        return torch.exp(-torch.lgamma(k + 1))[:, None, None, None]

    def act(self, weights: Tensor, v: Tensor) -> Tensor:
        """Multiply by numbers."""
        return weights.to(v) * v


class Modes:
    """A symmetric operator in its eigenvectors.

        Q φ_k(h λ) Qᵀ u

    Args:
        factors: Q of each axis of the sites, [batch | 1, n, n]; one for a line, two for an image.
        values: Eigenvalues for unit rate, [batch | 1, sites].
        rate: α/dx², one number or one for each feature.
    """

    def __init__(self, factors: tuple[Tensor, ...], values: Tensor, rate: float | Tensor) -> None:
        self.factors = factors
        self.spectrum = values[..., None] * rate

    def enter(self, u: Field) -> Tensor:
        """Expand in the eigenvectors."""
        return self._turn(u, transpose=True)

    def leave(self, v: Tensor) -> Field:
        """Sum the eigenvectors up."""
        return self._turn(v, transpose=False)

    def rate(self, v: Tensor) -> Tensor:
        """Multiply each mode by its eigenvalue."""
        return self.spectrum * v

    def phis(self, h: float, highest: int) -> Tensor:
        """Stack φ_k(hλ), [k, batch | 1, sites, dim | 1]."""
        return phi_functions(h * self.spectrum, highest)

    def act(self, weights: Tensor, v: Tensor) -> Tensor:
        """Multiply mode by mode."""
        return weights * v

    def _turn(self, u: Tensor, *, transpose: bool) -> Tensor:
        turns = [q.mT if transpose else q for q in self.factors]
        if len(turns) == 1:
            return turns[0] @ u
        height, width = (q.shape[-1] for q in turns)
        plane = u.reshape(*u.shape[:-2], height, width, u.shape[-1])
        plane = turns[1][:, None] @ plane  # along a row
        mixed = torch.einsum("bij,...bjwd->...biwd", turns[0].expand(u.shape[-3], -1, -1), plane)
        return mixed.flatten(-3, -2)


class Upwind:
    """Each site takes from the one before it; the first site of a piece is kept.

        (φ_k(hL) u)_i = Σ_{m < i−s} w_m u_{i−m} + (1/k! − Σ_{m < i−s} w_m) u_s

    s is where the piece of site i begins.

    Args:
        rate: c, one number or one for each feature.
        starts: [batch | 1, length], where the piece of each site begins.
    """

    def __init__(self, rate: float | Tensor, starts: Tensor, dtype: torch.dtype) -> None:
        self.pace = torch.as_tensor(rate, dtype=dtype, device=starts.device).reshape(-1)
        self.starts = starts

    def enter(self, u: Field) -> Tensor:
        """Return the field itself."""
        return u

    def leave(self, v: Tensor) -> Field:
        """Return the field itself."""
        return v

    def rate(self, v: Tensor) -> Tensor:
        """Give c (u_{i−1} − u_i), nothing at the first site of a piece."""
        sites = torch.arange(v.shape[-2], device=v.device)
        inner = (sites > self.starts)[..., None]
        return self.pace * torch.where(inner, v.roll(1, dims=-2) - v, 0.0)

    def phis(self, h: float, highest: int) -> Tensor:
        """Stack dense matrices, [k, batch | 1, dim | 1, n, n]."""
        n = self.starts.shape[-1]
        weights = poisson_tails(h * self.pace, n, highest)[:, None]
        row = torch.arange(n, device=self.starts.device)[:, None]
        column = row.mT
        start = self.starts[:, :, None]
        apart = (row - column).clamp_min(0).expand(n, n)
        inner = (column <= row) & (column > start)
        dense = torch.where(inner[:, None], weights[..., apart], 0.0)
        whole = torch.exp(-torch.lgamma(torch.arange(highest + 1).to(weights) + 1))
        rest = whole[:, None, None, None] - dense.sum(-1)
        return dense + torch.where((column == start)[:, None], rest[..., None], 0.0)

    def act(self, weights: Tensor, v: Tensor) -> Tensor:
        """Multiply by matrices."""
        if weights.shape[-3] == 1:
            return weights[..., 0, :, :] @ v
        return torch.einsum("...dij,...jd->...id", weights, v)


def line_modes(
    u: Field, rate: float | Tensor, *, boundary: Boundary, edges: Edges | None = None
) -> Modes:
    """Give the modes of diffusion along a sequence.

    Args:
        u: A field of the shape and kind to come.
        rate: α/dx².
        boundary: What the ends see.
        edges: Open edges; None for all, whose modes are known by formula. Cut edges take the
            eigenproblem of a symmetric matrix, O(n³) once.
    """
    length = u.shape[1]
    if edges is None:
        basis, values = eigenvectors(length, boundary)[None], eigenvalues(length, boundary)[None]
    else:
        dense = laplacian_matrix(length, boundary=boundary, weights=edges.cpu().double())
        values, basis = torch.linalg.eigh(dense)
        values = values.clamp_max(0.0)  # rounding may leave a constant growing
    return Modes((basis.to(u),), values.to(u), rate)


def plane_modes(
    u: Field, rate: float | Tensor, grid: tuple[int, int], *, boundary: Boundary
) -> Modes:
    """Give the modes of diffusion over an image: products of those of its sides.

        λ_{k,m} = λ_k + λ_m

    Args:
        u: A field of the shape and kind to come.
        rate: α/dx².
        grid: Height and width.
        boundary: What the sides see.
    """
    factors = tuple(eigenvectors(side, boundary)[None].to(u) for side in grid)
    height, width = (eigenvalues(side, boundary) for side in grid)
    values = (height[:, None] + width[None]).flatten()[None]
    return Modes(factors, values.to(u), rate)


def upwind(u: Field, rate: float | Tensor, valid_mask: Mask | None = None) -> Upwind:
    """Give the generator of causal transport, cut where either neighbour is padding."""
    sites = torch.arange(u.shape[1], device=u.device)
    if valid_mask is None:
        return Upwind(rate, torch.zeros_like(sites)[None], u.dtype)
    joined = torch.zeros_like(valid_mask)
    joined[:, 1:] = valid_mask[:, 1:] & valid_mask[:, :-1]
    starts = torch.where(joined, 0, sites).cummax(dim=1).values
    return Upwind(rate, starts, u.dtype)
