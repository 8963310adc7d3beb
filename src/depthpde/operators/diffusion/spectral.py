"""The exact semigroup by the fast Fourier transform.

    u ← exp(r L) u:    mode k is multiplied by exp(−4 r sin²(ω_k / 2))

Under no-flux ends the modes are cosines, and the field mirrored at its end is periodic, so a
Fourier transform of twice the length diagonalises L; under fixed ends it is the odd mirror image.
s steps are one of ratio s·r. Cut edges split a sequence into pieces; pieces of equal length are
transformed together. Cost: O(n log n). Adjoint: exp(rL) is symmetric and commutes with L, so

    grad_u = exp(srL) g        grad_r = s ⟨grad_u, L u⟩

Every boundary and mask, on every device; the ratio must be the same at every edge.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion import reference
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import Problem, as_compute, is_uniform, sum_to
from depthpde.operators.laplacian import laplacian
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge


def _check(ratio: PerEdge, problem: Problem) -> None:
    if problem.scheme is not Scheme.EXACT:
        raise problem.refusal("spectral", "the exact scheme")
    if not is_uniform(ratio):
        raise ValueError(
            "`ratio` must be the same at every edge for the spectral path, got one for each edge "
            f"{list(ratio.shape)}; use method='reference' or the explicit scheme"
        )


def _evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    _check(ratio, problem)
    field, ratio = as_compute(u, ratio)
    time = problem.steps * ratio
    if edges is None and problem.dilation == 1:
        return _semigroup(field, time, problem.boundary).to(u.dtype)
    if problem.boundary is Boundary.PERIODIC:
        return _dilated_circle(field, time, problem.dilation).to(u.dtype)
    out = field
    for rows, sites in _pieces(field, edges, problem):
        piece = field[rows[:, None], sites]
        pace = time[rows] if time.shape[0] > 1 else time
        evolved = _semigroup(piece, pace, problem.boundary)
        out = torch.index_put(out, (rows[:, None], sites), evolved)
    return out.to(u.dtype)


def _adjoint(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    grad_u = _evolve(g.detach(), ratio.detach(), edges, problem)
    generated = laplacian(
        u.detach().to(ratio.dtype),
        boundary=problem.boundary,
        dilation=problem.dilation,
        edges=edges,
    )
    products = (grad_u * generated).sum(dim=1, keepdim=True) * problem.steps
    return grad_u.contiguous(), sum_to(products, ratio.shape).to(ratio.dtype)


def _semigroup(u: Field, time: Tensor, boundary: Boundary) -> Field:
    """Apply exp(tL) to whole sequences, time [batch | 1, 1, dim | 1]."""
    length = u.shape[1]
    if not u.numel():  # an empty batch, which the transform refuses
        return u
    if boundary is Boundary.NO_FLUX:
        u = torch.cat((u, u.flip(1)), dim=1)
    elif boundary is Boundary.FIXED:
        zero = torch.zeros_like(u[:, :1])
        u = torch.cat((zero, u, zero, -u.flip(1)), dim=1)
    period = u.shape[1]
    mode = torch.arange(period // 2 + 1, device=u.device, dtype=u.dtype)
    damping = torch.exp(-4 * torch.sin(math.pi * mode / period)[:, None] ** 2 * time)
    smooth = torch.fft.irfft(torch.fft.rfft(u, dim=1) * damping, n=period, dim=1)
    first = 1 if boundary is Boundary.FIXED else 0
    return smooth[:, first : first + length]


def _dilated_circle(u: Field, time: Tensor, dilation: int) -> Field:
    """Apply exp(tL) on a circle whose neighbours stand δ apart: λ_k = −4 sin²(πkδ/n)."""
    length = u.shape[1]
    mode = torch.arange(length // 2 + 1, device=u.device, dtype=u.dtype)
    damping = torch.exp(-4 * torch.sin(math.pi * dilation * mode / length)[:, None] ** 2 * time)
    return torch.fft.irfft(torch.fft.rfft(u, dim=1) * damping, n=length, dim=1)


def _pieces(u: Field, edges: Edges | None, problem: Problem) -> list[tuple[Tensor, Tensor]]:
    """Group the connected pieces of all chains by their length.

    Returns:
        For each length the rows [pieces] and sites [pieces, length] of its pieces.
    """
    batch, length, _ = u.shape
    dilation = problem.dilation
    phases = range(min(dilation, length))
    order = np.concatenate([np.arange(phase, length, dilation) for phase in phases])
    near = order[:-1]
    continues = np.zeros((batch, length), bool)
    continues[:, 1:] = np.diff(order) == dilation
    if edges is not None and edges.shape[1]:
        opened = edges.cpu().numpy()[:, np.minimum(near, edges.shape[1] - 1)]
        continues[:, 1:] &= opened
    starts = np.flatnonzero(~continues)
    lengths = np.diff(starts, append=batch * length)
    pieces = []
    for n in np.unique(lengths[lengths > 1]):  # a site alone keeps its value, whatever it is
        first = starts[lengths == n]
        sites = order[(first % length)[:, None] + np.arange(n)]
        rows = torch.from_numpy(first // length).to(u.device)
        pieces.append((rows, torch.from_numpy(sites).to(u.device)))
    return pieces


def _composite(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    """Choose what torch's transforms pass through: pieces cannot be counted inside them."""
    path = _evolve if edges is None and problem.dilation == 1 else reference.evolve
    return path(u, ratio, edges, problem)


evolve = build("diffuse_spectral", _evolve, _adjoint, _composite)
