"""Smoothing attention weights along the keys is smoothing the values.

    (A D) V = A (D V),    (A D) 1 = A 1        D symmetric, D1 = 1, the same for every query

Rows of A are smoothed as fields over the keys: row a becomes Da = (aᵀD)ᵀ because D is symmetric, so
the product is associativity; D1 = 1 leaves every row its sum, so there is nothing to renormalise.
Walls at padding are one mask for all queries. A causal mask has its wall at each query's own
site: then every row has a D of its own, and no smoothing of the values does the same.

Derivation: docs/equations.md §9.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.interaction import attention_weights, interact, visible_pairs
from depthpde.shapes import Field
from depthpde.theory.claim import Check, Claim, ClaimEvidence, LineRole, Plot, Relation, line
from depthpde.theory.measurement import random_field

SITES = 24


def _gap(*, causal: bool, padded: bool = False, ratio: float = 0.25) -> tuple[float, float]:
    """Measure ‖(AD)V − A(DV)‖ / ‖AV‖, and by how much a row of AD misses the sum of A's."""
    u = random_field("smoothed-weights", length=SITES)
    valid = torch.arange(SITES)[None] < SITES - 5 if padded else None
    weights = attention_weights(u, u, valid_mask=valid, causal=causal)
    seen = visible_pairs(weights, valid_mask=valid, causal=causal)
    smooth = _along_keys(weights, seen, ratio)
    by_values = interact(diffuse(u, ratio, steps=3, valid_mask=valid), weights)
    gap = (interact(u, smooth) - by_values).norm() / interact(u, weights).norm()
    missed = (smooth.sum(dim=-1) - weights.sum(dim=-1)).abs().max()
    return float(gap), float(missed)


def _along_keys(weights: Tensor, seen: Tensor | None, ratio: float) -> Field:
    rows = weights.reshape(-1, SITES, 1)
    mask = None if seen is None else seen.expand_as(weights).reshape(-1, SITES)
    return diffuse(rows, ratio, steps=3, valid_mask=mask).reshape(weights.shape)


def _same(name: str, *, causal: bool = False, padded: bool = False) -> Check:
    return Check(
        quantity=f"‖(AD)V − A(DV)‖ / ‖AV‖, {name}",
        predicted=0.0,
        measured=_gap(causal=causal, padded=padded)[0],
        tolerance=1e-13,
    )


def _measure() -> ClaimEvidence:
    ratios = [0.02 * k for k in range(26)]
    return ClaimEvidence(
        checks=(
            _same("every site seen by every query"),
            _same("five padded sites", padded=True),
            Check(
                quantity="largest change of the sum of a row of A",
                predicted=1e-13,
                measured=_gap(causal=False, padded=True)[1],
                comparison=Relation.AT_MOST,
            ),
        ),
        plots=(
            Plot(
                title="Smoothing the weights or the values",
                x_label="ratio r",
                y_label="‖(AD)V − A(DV)‖ / ‖AV‖",
                series=(
                    line(
                        "one mask for all queries",
                        ratios,
                        [_gap(causal=False, padded=True, ratio=r)[0] for r in ratios],
                    ),
                    line(
                        "a causal mask",
                        ratios,
                        [_gap(causal=True, ratio=r)[0] for r in ratios],
                        LineRole.WARNING,
                    ),
                ),
                description="Relative difference between smoothed weights and smoothed values by "
                "ratio from 0 to 1/2. With one mask for all queries it is zero to rounding; with a "
                "causal mask it grows with the ratio.",
            ),
        ),
    )


CLAIM = Claim(
    name="smoothed-weights",
    statement="Smoothing attention weights along the keys is smoothing the values.",
    equation="(A D) V = A (D V),  D = Dᵀ,  D1 = 1",
    source="Paper A v3, position in_attention (its two readings)",
    measure=_measure,
    counterexample="a causal mask: each query has walls of its own, so a step of its own",
    refute=lambda: _same("a causal mask", causal=True),
)
