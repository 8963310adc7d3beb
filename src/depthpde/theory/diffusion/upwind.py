"""Causal smoothing is upwind; the causal second difference amplifies.

    upwind      u_i ← (1 − r) u_i + r u_{i−1}                 ‖U‖_∞ = 1 for 0 ≤ r ≤ 1
    tempting    u_i ← u_i + α (u_i − 2u_{i−1} + u_{i−2})      gain 1 + 4α at ω = π

Derivation: docs/equations.md §12.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.stability import Scheme
from depthpde.shapes import Field
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH, matrix_of, spectral_norm

ALPHA = 0.1


def _upwind(ratio: float, steps: int = 1) -> Tensor:
    return matrix_of(lambda u: diffuse(u, ratio, steps=steps, scheme=Scheme.UPWIND))


def _second_difference(u: Field) -> Field:
    padded = functional.pad(u.mT, (2, 0), mode="replicate").mT
    return u + ALPHA * (padded[:, 2:] - 2 * padded[:, 1:-1] + padded[:, :-2])


def _max_norm(name: str, matrix: Tensor) -> Check:
    return Check(
        quantity=f"max-norm gain ‖U‖_∞, {name}",
        predicted=1.0,
        measured=float(matrix.abs().sum(dim=1).max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-14,
    )


def _sees_no_future() -> Check:
    return Check(
        quantity="largest influence of a later site, 8 upwind steps",
        predicted=0.0,
        measured=float(_upwind(0.7, steps=8).triu(diagonal=1).abs().max()),
    )


def _gain_of_the_second_difference() -> Check:
    signs = (-1.0) ** torch.arange(LENGTH, dtype=torch.float64)[None, :, None]
    inside = _second_difference(signs)[:, 2:].abs().max()
    return Check(
        quantity=f"gain of the causal second difference at ω = π, α = {ALPHA:g}",
        predicted=1 + 4 * ALPHA,
        measured=float(inside),
        tolerance=1e-14,
    )


def _only_the_max_norm() -> Check:
    return Check(
        quantity="2-norm of upwind, r = 1/2 (why only the max-norm is claimed)",
        predicted=1.0,
        measured=spectral_norm(_upwind(0.5)),
        comparison=Relation.AT_LEAST,
    )


def _measure() -> ClaimEvidence:
    return ClaimEvidence(
        checks=(
            _max_norm("r = 1/2", _upwind(0.5)),
            _max_norm("r = 1", _upwind(1.0)),
            _sees_no_future(),
            _gain_of_the_second_difference(),
            _only_the_max_norm(),
        )
    )


CLAIM = Claim(
    name="upwind",
    statement="Causal smoothing is upwind and never exceeds the largest value; the causal second "
    "difference amplifies.",
    equation="‖(1 − r)I + rS‖_∞ = 1,  0 ≤ r ≤ 1",
    source="Our own: what paper A's layer becomes in a decoder",
    measure=_measure,
    counterexample="the second difference written with past sites only",
    refute=lambda: _max_norm("causal second difference", matrix_of(_second_difference)),
)
