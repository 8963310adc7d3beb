"""A bounded stencil raises no 2-norm on a ring, nor between walls if it is symmetric.

    ring        ‖S‖₂ = sup_ω |H(ω)| ≤ Σ|a_k| ≤ 1
    walls       S = Sᵀ for symmetric taps, so ‖S‖₂ ≤ ‖S‖_∞ ≤ 1

Asymmetric taps at a wall can exceed it: a column gathers what the wall reflects. The shift by one
site, Σ|a_k| = 1, repeats the first site, and that column alone has length √2.
Derivation: docs/equations.md §17.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depthpde.layers.stencil import LearnedStencil
from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion import filtering
from depthpde.operators.diffusion.problem import Problem
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import matrix_of, spectral_norm
from depthpde.theory.stencil.maximum import DRAWS, drawn


def _at_most_one(name: str, matrices: list[Tensor]) -> Check:
    return Check(
        quantity=f"2-norm, {name}",
        predicted=1.0,
        measured=max(spectral_norm(each) for each in matrices),
        comparison=Relation.AT_MOST,
        tolerance=1e-13,
    )


def _on_a_ring(layer: LearnedStencil) -> Tensor:
    ring = Problem(boundary=Boundary.PERIODIC)
    taps = layer.taps.detach()[None]
    return matrix_of(lambda u: filtering.evolve(u, taps, None, ring))


def _shift() -> Tensor:
    layer = LearnedStencil(1, reach=1, dtype=torch.float64).requires_grad_(False)
    layer.theta.copy_(torch.tensor([[1.0], [0.0], [0.0]]))
    return matrix_of(layer)


def _columns_at_a_wall() -> Check:
    return Check(
        quantity="2-norm of the shift by one site at a wall",
        predicted=math.sqrt(2),
        measured=spectral_norm(_shift()),
        tolerance=1e-14,
    )


def _means_kept() -> Check:
    layers = [drawn(f"stencil/{draw}", bound="convex", symmetric=True) for draw in range(DRAWS)]
    columns = torch.stack([matrix_of(layer).sum(dim=0) for layer in layers])
    return Check(
        quantity=f"largest error of a column's sum, {DRAWS} convex symmetric stencils (mean kept)",
        predicted=0.0,
        measured=float((columns - 1).abs().max()),
        tolerance=1e-13,
    )


CLAIM = Claim(
    name="stencil-norm",
    statement="A bounded stencil raises no 2-norm on a ring, and between walls if its taps are "
    "symmetric; asymmetric taps at a wall can.",
    equation="‖S‖₂ ≤ Σ|a_k| ≤ 1  (ring, or S = Sᵀ)",
    source="Our own: what may be claimed of a learned stencil",
    measure=lambda: ClaimEvidence(
        checks=(
            _at_most_one(
                f"{DRAWS} random symmetric stencils between walls",
                [matrix_of(drawn(f"stencil/{draw}", symmetric=True)) for draw in range(DRAWS)],
            ),
            _at_most_one(
                f"{DRAWS} random stencils on a ring",
                [_on_a_ring(drawn(f"stencil/{draw}")) for draw in range(DRAWS)],
            ),
            _columns_at_a_wall(),
            _means_kept(),
        )
    ),
    counterexample="the shift by one site, Σ|a_k| = 1, at a wall",
    refute=lambda: _at_most_one("the shift at a wall", [_shift()]),
)
