"""The explicit and the upwind step in plain torch.

    f = r · open · Gu,    u ← u + div f        upwind: u_j ← u_j − f_e,  e = (i, j)

Composed of torch operations only: derivatives of every order, forward mode, vmap and export come
from torch itself. Cost: about nine passes over the field a step, and autograd keeps what each
step needs, so memory grows with the number of steps.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion.problem import Problem, as_compute, as_dtype
from depthpde.operators.laplacian import difference, divergence
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge


def evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    """Diffuse by repeated stencils."""
    if problem.scheme not in (Scheme.EXPLICIT, Scheme.UPWIND):
        raise problem.refusal("stencil", "the explicit and the upwind scheme")
    field, ratio = as_compute(u, ratio)
    if problem.boundary is Boundary.NO_FLUX and u.shape[1] < problem.dilation:
        return u.clone()
    for _ in range(problem.steps):
        field = _step(field, ratio, edges, problem)
    return field.to(u.dtype)


def step_behind(u: Field, before: Field, share: PerEdge, bound: float = 1.0) -> Field:
    """Take one upwind step at single sites whose neighbours stand apart from them: decoding.

        u ← u + r (before − u),    r = bound · share

    Args:
        u: The sites, [batch, 1, dim].
        before: The sites in front of them, of the same shape and precision.
        share: Of the bound, for each feature or all.
        bound: Multiplied with it: a number in the one operation that there is anyhow.
    """
    field, share = as_compute(u, share)
    return as_dtype(torch.addcmul(field, share, before - field, value=bound), u.dtype)


def _step(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    change = difference(u, problem.boundary, problem.dilation)
    if edges is not None:  # before the product: its gradient by the ratio reads the change
        change = torch.where(edges[..., None], change, 0.0)
    flux = ratio * change
    if problem.scheme is Scheme.UPWIND:
        return u - F.pad(flux, (0, 0, problem.dilation, 0))
    return u + divergence(flux, problem.boundary, problem.dilation)
