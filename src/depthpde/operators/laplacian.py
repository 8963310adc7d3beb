"""The discrete ∂²/∂x²: stencil, dense matrix and eigenvalues, in one and two dimensions.

    (Lu)_i = Σ over the edges (i, j) at i of (u_j − u_i)        L = −GᵀG

G, the `difference`, takes a field to the differences along its edges; `divergence` is −Gᵀ. Every
other property follows from this pair: L is symmetric, its rows sum to zero under no-flux and
periodic ends, and no eigenvalue is positive.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.errors import check_positive
from depthpde.operators.boundary import Boundary, count_edges
from depthpde.shapes import Edges, Field, PerEdge


def difference(u: Field, boundary: Boundary = Boundary.NO_FLUX, dilation: int = 1) -> PerEdge:
    """Take the difference of the field along every edge.

        (Gu)_e = u_j − u_i,    e = (i, j = i + δ)

    Returns:
        [batch, edges, dim], with as many edges as `count_edges` says.
    """
    if boundary is Boundary.PERIODIC:
        return torch.roll(u, -dilation, dims=1) - u
    if boundary is Boundary.FIXED:
        u = F.pad(u, (0, 0, dilation, dilation))
    return u[:, dilation:] - u[:, :-dilation]


def divergence(flux: PerEdge, boundary: Boundary = Boundary.NO_FLUX, dilation: int = 1) -> Field:
    """Collect at every site what its edges bring.

        (−Gᵀf)_i = f_{i+½} − f_{i−½}

    The negative adjoint of `difference`: ⟨f, Gu⟩ = −⟨div f, u⟩, so what leaves one site enters
    another and nothing is lost.
    """
    if boundary is Boundary.PERIODIC:
        return flux - torch.roll(flux, dilation, dims=1)
    if boundary is Boundary.FIXED:
        return flux[:, dilation:] - flux[:, :-dilation]
    return F.pad(flux, (0, 0, 0, dilation)) - F.pad(flux, (0, 0, dilation, 0))


def laplacian(
    u: Field,
    *,
    boundary: Boundary = Boundary.NO_FLUX,
    dilation: int = 1,
    edges: Edges | None = None,
) -> Field:
    """Apply the Laplacian along the sequence.

        (Lu)_i = u_{i+δ} − 2 u_i + u_{i−δ},    with every cut edge left out

    Second order in the spacing. Symmetric and negative semi-definite; constants are in its null
    space unless the ends are fixed.

    Args:
        u: The field.
        boundary: What the ends see.
        dilation: Distance δ between neighbours.
        edges: True where an edge is open; None for all.
    """
    if boundary is Boundary.NO_FLUX and u.shape[1] < dilation:
        return torch.zeros_like(u)
    flux = difference(u, boundary, dilation)
    if edges is not None:
        flux = torch.where(edges[..., None], flux, 0.0)  # what stands beyond may be no number
    return divergence(flux, boundary, dilation)


def laplacian_2d(
    u: Field,
    grid: tuple[int, int],
    *,
    boundary: Boundary = Boundary.NO_FLUX,
    edges: tuple[Edges, Edges] | None = None,
) -> Field:
    """Apply the five-point Laplacian to an image laid out row by row.

        (Lu)_{y,x} = u_{y,x+1} + u_{y,x−1} + u_{y+1,x} + u_{y−1,x} − 4 u_{y,x}

    Along a row the neighbours stand 1 apart; down a column they stand `width` apart in the
    flattened field, so both are the one-dimensional Laplacian.

    Args:
        u: The field, [batch, height·width, dim].
        grid: Height and width.
        boundary: What all four sides see.
        edges: Open edges along the rows, [batch·height, …], and down the columns, [batch, …].
    """
    height, width = grid
    batch, _, dim = u.shape
    along, down = edges if edges is not None else (None, None)
    rows = u.reshape(batch * height, width, dim)
    horizontal = laplacian(rows, boundary=boundary, edges=along).reshape(u.shape)
    return horizontal + laplacian(u, boundary=boundary, dilation=width, edges=down)


def incidence_matrix(
    length: int, boundary: Boundary = Boundary.NO_FLUX, dilation: int = 1
) -> Tensor:
    """Write `difference` as a dense matrix, edge by edge.

        G[e, j] = +1,  G[e, i] = −1    for e = (i, j)

    Returns:
        [edges, length] in float64.
    """
    check_positive("length", length)
    num_edges = count_edges(length, boundary, dilation)
    matrix = torch.zeros(num_edges, length, dtype=torch.float64)
    first = -dilation if boundary is Boundary.FIXED else 0
    for edge in range(num_edges):
        near, far = first + edge, first + edge + dilation
        if boundary is Boundary.PERIODIC:
            far %= length
        if 0 <= near < length:
            matrix[edge, near] -= 1
        if 0 <= far < length:
            matrix[edge, far] += 1
    return matrix


def laplacian_matrix(
    length: int,
    *,
    boundary: Boundary = Boundary.NO_FLUX,
    dilation: int = 1,
    weights: Tensor | None = None,
) -> Tensor:
    """Write the Laplacian as a dense matrix.

        L = −Gᵀ diag(w) G

    Args:
        length: Number of sites.
        boundary: What the ends see.
        dilation: Distance between neighbours.
        weights: Conductance of each edge, [..., edges]; None for ones.

    Returns:
        [..., length, length] in float64 (or the weights' dtype).
    """
    incidence = incidence_matrix(length, boundary, dilation)
    if weights is None:
        return -incidence.mT @ incidence
    incidence = incidence.to(weights)
    return -incidence.mT @ (weights[..., None] * incidence)


def laplacian_matrix_2d(grid: tuple[int, int], *, boundary: Boundary = Boundary.NO_FLUX) -> Tensor:
    """Write the five-point Laplacian as a dense matrix over the flattened grid.

    L = L_height ⊗ I + I ⊗ L_width
    """
    height, width = grid
    columns = laplacian_matrix(height, boundary=boundary)
    rows = laplacian_matrix(width, boundary=boundary)
    eye = torch.eye
    return torch.kron(columns, eye(width).to(columns)) + torch.kron(eye(height).to(rows), rows)


def eigenvalues(length: int, boundary: Boundary = Boundary.NO_FLUX) -> Tensor:
    """Give the Laplacian's eigenvalues by formula, from the smoothest mode to the roughest.

        λ_k = −4 sin²(ω_k / 2),    ω_k = πk/n  no-flux,   π(k+1)/(n+1)  fixed,   2πk/n  periodic

    Returns:
        [modes] in float64; for periodic ends in the order of the Fourier modes k = 0 … n−1.
    """
    check_positive("length", length)
    return -4 * torch.sin(frequencies(length, boundary) / 2) ** 2


def frequencies(length: int, boundary: Boundary = Boundary.NO_FLUX) -> Tensor:
    """Give the angular frequency ω_k of each eigenmode, in radians per site."""
    mode = torch.arange(length, dtype=torch.float64)
    if boundary is Boundary.PERIODIC:
        return 2 * math.pi * mode / length
    if boundary is Boundary.FIXED:
        return math.pi * (mode + 1) / (length + 1)
    return math.pi * mode / length


def eigenvectors(length: int, boundary: Boundary = Boundary.NO_FLUX) -> Tensor:
    """Give the orthonormal eigenvectors that belong to `eigenvalues`, one in each column.

    no-flux: cos(ω_k (i + ½))  (DCT-II)        fixed: sin(ω_k (i + 1))  (DST-I)
    periodic: cos(ω_k i) up to k = n/2, then sin(ω_k i)
    """
    check_positive("length", length)
    site = torch.arange(length, dtype=torch.float64)[:, None]
    omega = frequencies(length, boundary)[None]
    if boundary is Boundary.NO_FLUX:
        modes = torch.cos(omega * (site + 0.5))
    elif boundary is Boundary.FIXED:
        modes = torch.sin(omega * (site + 1))
    else:
        is_cosine = torch.arange(length)[None] <= length // 2
        modes = torch.where(is_cosine, torch.cos(omega * site), torch.sin(omega * site))
    return modes / modes.norm(dim=0, keepdim=True)


def eigenvalues_2d(grid: tuple[int, int], boundary: Boundary = Boundary.NO_FLUX) -> Tensor:
    """Give the eigenvalues of the five-point Laplacian, [height, width].

    λ_{k,m} = λ_k(height) + λ_m(width)
    """
    height, width = grid
    return eigenvalues(height, boundary)[:, None] + eigenvalues(width, boundary)[None]
