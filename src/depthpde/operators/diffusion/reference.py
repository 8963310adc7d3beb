"""The definition: the step as a dense matrix, raised to the number of steps.

    L = −Gᵀ diag(r · open) G,    u ← S(L)^steps u

Short, slow (O(n³)) and the judge of every other path. All schemes, ends, masks and ratios, with
derivatives of every order and in every mode. What stands beyond a wall is left out of the sums, not
multiplied by zero: it may be no number.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.operators.boundary import is_alone
from depthpde.operators.diffusion.problem import Problem, as_compute
from depthpde.operators.laplacian import incidence_matrix
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge


def evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    """Diffuse by the dense matrix of one step, [batch | 1, dim | 1, length, length]."""
    field, ratio = as_compute(u, ratio)
    matrix = torch.linalg.matrix_power(
        step_matrix(u.shape[1], ratio, edges, problem), problem.steps
    )
    if edges is None:
        return (matrix @ field.mT[..., None])[..., 0].mT.to(u.dtype)
    joined = are_joined(edges, u.shape[1], problem.dilation)[:, None]
    alone = is_alone(edges, u.shape[1], problem.dilation)
    rows = torch.where(joined, torch.where(alone, 0.0, field).mT[:, :, None], 0.0)
    return torch.where(alone, u, (matrix * rows).sum(dim=-1).mT.to(u.dtype))


def are_joined(edges: Edges, length: int, dilation: int = 1) -> Tensor:
    """Tell which sites stand in one piece of a chain, [batch | 1, length, length]."""
    walls = F.pad(~edges, (min(dilation, length), 0), value=True)
    site = torch.arange(length, device=edges.device)
    piece = torch.zeros(edges.shape[0], length, dtype=torch.long, device=edges.device)
    for phase in range(min(dilation, length)):  # each phase is a chain of its own
        own = site % dilation == phase
        piece[:, own] = phase + dilation * walls[:, own].long().cumsum(dim=1)
    return piece[:, :, None] == piece[:, None, :]


def step_matrix(length: int, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Tensor:
    """Write one step as a dense matrix for each sequence and feature."""
    incidence = incidence_matrix(length, problem.boundary, problem.dilation).to(ratio)
    weights = ratio.expand(-1, incidence.shape[0], -1)
    if edges is not None:
        weights = weights * edges[..., None].to(ratio)
    eye = torch.eye(length).to(ratio)
    flux = weights.mT[..., None] * incidence
    if problem.scheme is Scheme.UPWIND:
        return eye - incidence.clamp(min=0).mT @ flux
    generator = -incidence.mT @ flux
    if problem.scheme is Scheme.EXPLICIT:
        return eye + generator
    if problem.scheme is Scheme.BACKWARD_EULER:
        return torch.linalg.inv(eye - generator)
    if problem.scheme is Scheme.CRANK_NICOLSON:
        return torch.linalg.solve(eye - generator / 2, eye + generator / 2)
    return torch.linalg.matrix_exp(generator)
