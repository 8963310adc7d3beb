"""Implicit and exact steps are stable at any ratio.

    backward Euler 1/(1 + rμ)      Crank–Nicolson (1 − ½rμ)/(1 + ½rμ)      exact e^{−rμ},    μ ≥ 0

No multiplier leaves [−1, 1], whatever r. Derivation: docs/equations.md §14.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.laplacian import eigenvalues
from depthpde.operators.stability import Scheme
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH, explicit_step, matrix_of, spectral_norm

RATIO = 100.0
MULTIPLIERS: dict[Scheme, Callable[[Tensor], Tensor]] = {
    Scheme.BACKWARD_EULER: lambda z: 1 / (1 - z),
    Scheme.CRANK_NICOLSON: lambda z: (1 + z / 2) / (1 - z / 2),
    Scheme.EXACT: torch.exp,
}


def _gain(name: str, matrix: Tensor) -> Check:
    return Check(
        quantity=f"‖D‖₂ at r = {RATIO:g}, {name}",
        predicted=1.0,
        measured=spectral_norm(matrix),
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


def _matrix(scheme: Scheme) -> Tensor:
    return matrix_of(lambda u: diffuse(u, RATIO, scheme=scheme))


def _multipliers(scheme: Scheme) -> Check:
    predicted = MULTIPLIERS[scheme](RATIO * eigenvalues(LENGTH)).sort().values
    measured = torch.linalg.eigvalsh(_matrix(scheme))
    return Check(
        quantity=f"largest error of a mode's multiplier, {scheme.value}",
        predicted=0.0,
        measured=float((measured - predicted).abs().max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


CLAIM = Claim(
    name="unconditional",
    statement="Backward Euler, Crank–Nicolson and the exact semigroup are stable at any ratio.",
    equation="|R(−rμ)| ≤ 1  for all r, μ ≥ 0",
    source="Classical; what lifts paper A's step-size bound",
    measure=lambda: ClaimEvidence(
        checks=(
            *(_gain(scheme.value, _matrix(scheme)) for scheme in MULTIPLIERS),
            *(_multipliers(scheme) for scheme in MULTIPLIERS),
        )
    ),
    counterexample="the explicit step at the same ratio",
    refute=lambda: _gain("explicit", matrix_of(lambda u: explicit_step(u, RATIO))),
)
