"""Coupling: does the order of diffusion and attention matter, and what does an insertion change?

frozen       ‖(D_r A − A D_r) u‖ / ‖u‖          A the attention of this field, held fixed
nonlinear    ‖D_r Attn(u) − Attn(D_r u)‖ / ‖u‖  attention computed anew
insertion    ‖D u − u‖ ≤ 2 n r √(2E(u))          what n steps move, against their bound
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm

from depthpde.layers.diffusion import AdaptiveDiffusion, Diffusion
from depthpde.layers.multiscale import MultiscaleDiffusion
from depthpde.measures.energy import cfl_margin
from depthpde.measures.tokens import real_field
from depthpde.operators.commutator import Operator, commutator_norm
from depthpde.operators.diffusion.dispatch import diffuse, open_edge_mask
from depthpde.operators.energy import dirichlet_energy
from depthpde.operators.stability import Scheme
from depthpde.shapes import Field, Mask

RATIO = 0.25
"""The ratio of the diffusion that attention is compared with: the largest that keeps all signs."""


def frozen_coupling(
    weights: Tensor, u: Field, valid_mask: Mask | None = None, *, ratio: float = RATIO
) -> Tensor:
    """Measure how much the order of diffusion and this attention matters for this field.

        mean_h ‖(D_r A_h − A_h D_r) u‖ / ‖u‖

    Proportional to the ratio.

    Args:
        weights: Attention, [batch, heads, length, length].
        u: What attention mixes, [batch, length, dim].
        valid_mask: True = real token.
        ratio: r.

    Returns:
        [batch].
    """
    u = real_field("u", u, valid_mask)
    weights = weights.detach().to(u.dtype)
    if valid_mask is not None:
        weights = weights * (valid_mask[:, None, :, None] & valid_mask[:, None, None, :])

    batch, heads = weights.shape[:2]
    mask = None if valid_mask is None else valid_mask.repeat_interleave(heads, 0)
    kernels, fields = weights.flatten(0, 1), u.repeat_interleave(heads, 0)
    found = commutator_norm(
        lambda v: diffuse(v, ratio, valid_mask=mask), lambda v: kernels @ v, fields
    )
    return found.reshape(batch, heads).mean(dim=1)


def nonlinear_coupling(
    attend: Operator, u: Field, valid_mask: Mask | None = None, *, ratio: float = RATIO
) -> Tensor:
    """Measure how much the order matters when attention is computed anew.

        ‖D_r Attn(u) − Attn(D_r u)‖ / ‖u‖

    Args:
        attend: Attention as a map of fields; it must know the padding itself.
        u: What it reads.
        valid_mask: True = real token.
        ratio: r.

    Returns:
        [batch].
    """

    def smooth(v: Field) -> Field:
        return diffuse(v, ratio, valid_mask=valid_mask)

    def blank(v: Field) -> Field:
        return v if valid_mask is None else v * valid_mask[..., None]

    return commutator_norm(smooth, lambda v: blank(attend(v)), real_field("u", u, valid_mask))


def insertion_change(before: Field, after: Field, valid_mask: Mask | None = None) -> Tensor:
    """Measure what a layer moved, ‖D u − u‖, [batch]."""
    u, v = real_field("u", before, valid_mask), real_field("v", after, valid_mask)
    moved: Tensor = vector_norm(v - u, dim=(1, 2))
    return moved


def insertion_bound(layer: nn.Module, u: Field, valid_mask: Mask | None = None) -> Tensor | None:
    """Bound what a diffusion layer can move, from how rough the field is.

        ‖D^n u − u‖ ≤ n ‖(D − I) u‖ ≤ 2 n r √(2E(u))        I − D = r Gᵀ G, ‖G‖ ≤ 2, ‖D‖ ≤ 1

    G, and E with it, counts the edges that the layer's own ends have.

    Upwind moves ‖D u − u‖ = r √(2E) in one step. Implicit and exact steps move no more than the
    explicit one of the same ratio.

    Args:
        layer: A diffusion layer.
        u: What it reads.
        valid_mask: True = real token.

    Returns:
        [batch]; None where no bound is known: schemes and grids for which we have derived none.
    """
    if isinstance(layer, MultiscaleDiffusion):
        if layer.gate is not None:
            return None
        parts = [insertion_bound(each, u, valid_mask) for each in layer.members]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        weights = layer.weights.detach().to(known[0].dtype)
        return (weights[:, None] * torch.stack(known)).sum(dim=0)
    if not isinstance(layer, Diffusion | AdaptiveDiffusion) or getattr(layer, "grid", None):
        return None
    problem, largest = layer.problem, float(layer.ratio.detach().max())
    u = real_field("u", u, valid_mask)
    edges = open_edge_mask(u, problem, valid_mask=valid_mask)
    rough = dirichlet_energy(u, edges=edges, boundary=problem.boundary, dilation=problem.dilation)
    slope = (2 * rough).sqrt()
    if problem.scheme is Scheme.UPWIND:
        return largest * slope if problem.steps == 1 else None
    if problem.steps > 1 and cfl_margin(layer) < 0:  # ‖D‖ > 1
        return None
    return 2 * problem.steps * largest * slope
