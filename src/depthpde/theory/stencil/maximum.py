"""A stencil whose taps sum to at most 1 in size raises no maximum, whatever it has learned.

    Σ_k |a_k| ≤ 1      ⟹      ‖S‖_∞ = max_i Σ_j |S_ij| ≤ 1,    reflected walls included

Derivation: docs/equations.md §17.
"""

from __future__ import annotations

import torch

from depthpde.layers.stencil import LearnedStencil
from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.seeds import generator
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH, matrix_of

DRAWS = 32


def drawn(name: str, **options: object) -> LearnedStencil:
    """Give a stencil of one feature and reach 16 whose parameters are large and random."""
    layer = LearnedStencil(1, dtype=torch.float64, **options)  # type: ignore[arg-type]
    stream = generator(0, "theory", name)
    with torch.no_grad():
        layer.theta.copy_(3 * torch.randn(layer.theta.shape, generator=stream, dtype=torch.float64))
    return layer.requires_grad_(False)


def _largest_row(name: str, length: int = LENGTH, **options: object) -> Check:
    rows = [
        float(matrix_of(drawn(f"stencil/{draw}", **options), length).abs().sum(dim=1).max())
        for draw in range(DRAWS)
    ]
    return Check(
        quantity=f"max-norm gain over {DRAWS} random stencils, {name}",
        predicted=1.0,
        measured=max(rows),
        comparison=Relation.AT_MOST,
        tolerance=1e-14,
    )


def _heat_start() -> Check:
    layer = LearnedStencil(1, dtype=torch.float64).requires_grad_(False)
    gap = matrix_of(layer) - matrix_of(lambda u: diffuse(u, 1 / 8, steps=16, method="reference"))
    return Check(
        quantity="largest difference between the start and 16 steps of heat flow, r = 1/8",
        predicted=0.0,
        measured=float(gap.abs().max()),
        tolerance=1e-14,
    )


CLAIM = Claim(
    name="stencil-maximum",
    statement="A learned stencil bounded in the sum of its taps raises no maximum, for every "
    "parameter, at walls as inside.",
    equation="Σ|a_k| ≤ 1  ⟹  ‖S‖_∞ ≤ 1",
    source="Our own: paper A's learnable stencil with paper A's guarantee",
    measure=lambda: ClaimEvidence(
        checks=(
            _largest_row("signed taps"),
            _largest_row("signed taps on 5 sites, shorter than the reach", length=5),
            _largest_row("causal taps", causal=True),
            _largest_row("convex taps", bound="convex"),
            _heat_start(),
        )
    ),
    counterexample="free taps (bound=None)",
    refute=lambda: _largest_row("free taps", bound=None),
)
