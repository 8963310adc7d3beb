"""Scales of one step each collapse into one.

    Σ_k w_k (I + r_k L) = I + (Σ_k w_k r_k) L

Derivation: docs/equations.md §10.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from depthpde.layers.multiscale import DiffusionScale, MultiscaleDiffusion
from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.laplacian import laplacian_matrix
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH, matrix_of

WEIGHTS = (0.5, 0.3, 0.2)
RATIOS = (0.05, 0.15, 0.25)


def _mixture(steps: Sequence[int]) -> torch.Tensor:
    parts = [
        weight * matrix_of(lambda u, r=ratio, s=count: diffuse(u, r, steps=s))  # type: ignore[misc]
        for weight, ratio, count in zip(WEIGHTS, RATIOS, steps, strict=True)
    ]
    return torch.stack(parts).sum(dim=0)


def _nearest_ratio(steps: Sequence[int]) -> tuple[float, float]:
    """Find the single step nearest to a mixture, and how far it stays away from it."""
    change = _mixture(steps) - torch.eye(LENGTH, dtype=torch.float64)
    L = laplacian_matrix(LENGTH)
    ratio = float((change * L).sum() / L.square().sum())
    return ratio, float((change - ratio * L).norm() / change.norm())


def _distance(steps: Sequence[int]) -> Check:
    return Check(
        quantity=f"distance of the mixture from the nearest single step, steps {tuple(steps)}",
        predicted=0.0,
        measured=_nearest_ratio(steps)[1],
        comparison=Relation.AT_MOST,
        tolerance=1e-13,
    )


def _ratio() -> Check:
    return Check(
        quantity="ratio of the single step that equals the mixture",
        predicted=sum(w * r for w, r in zip(WEIGHTS, RATIOS, strict=True)),
        measured=_nearest_ratio((1, 1, 1))[0],
        tolerance=1e-14,
    )


def _layer_refuses() -> Check:
    try:
        MultiscaleDiffusion(
            4, scales=[DiffusionScale(initial_ratio=ratio) for ratio in (0.05, 0.15)]
        )
    except ValueError as error:
        refused = "Σ w_k (I + r_k L)" in str(error)
    else:
        refused = False
    return Check(
        quantity="layers of one-step scales that are refused with this reason, of 1",
        predicted=1.0,
        measured=float(refused),
    )


CLAIM = Claim(
    name="collapse",
    statement="A weighted sum of one-step diffusions is one diffusion step: not multi-scale.",
    equation="Σ w_k (I + r_k L) = I + (Σ w_k r_k) L",
    source="Our own: a hypothesis that paper A's multi-scale form needs",
    measure=lambda: ClaimEvidence(checks=(_ratio(), _distance((1, 1, 1)), _layer_refuses())),
    counterexample="scales of 1, 4 and 16 steps do not collapse",
    refute=lambda: _distance((1, 4, 16)),
)
