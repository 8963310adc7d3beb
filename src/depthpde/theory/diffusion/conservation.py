"""Diffusion conserves the mean over sites.

    Σ_i (D u)_i = Σ_i u_i        since 1ᵀL = 0 under no-flux walls

Derivation: docs/equations.md §4.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.energy import mass
from depthpde.operators.stability import Scheme
from depthpde.shapes import Field, Mask
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH, random_field

STEPS = 100


def _drift(name: str, step: Callable[[Field], Field], valid_mask: Mask | None = None) -> Check:
    u = 1 + random_field("conservation")
    before, after = (mass(each, valid_mask=valid_mask) for each in (u, step(u)))
    return Check(
        quantity=f"largest relative change of the mean, {STEPS} steps, {name}",
        predicted=0.0,
        measured=float(((after - before) / before).abs().max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


def _measure() -> ClaimEvidence:
    mask = torch.arange(LENGTH)[None] < 40
    return ClaimEvidence(
        checks=(
            _drift("explicit", lambda u: diffuse(u, 0.5, steps=STEPS)),
            _drift(
                "explicit beside padding",
                lambda u: diffuse(u, 0.5, steps=STEPS, valid_mask=mask),
                mask,
            ),
            *(
                _drift(scheme.value, lambda u, s=scheme: diffuse(u, 2.0, steps=STEPS, scheme=s))  # type: ignore[misc]
                for scheme in (Scheme.BACKWARD_EULER, Scheme.CRANK_NICOLSON, Scheme.EXACT)
            ),
        )
    )


CLAIM = Claim(
    name="conservation",
    statement="Diffusion conserves the mean over sites, beside padding too.",
    equation="Σ_i (D u)_i = Σ_i u_i",
    source="Paper A v3, layer 1 (Neumann Laplacian); stated with proof in docs/equations.md §4",
    measure=_measure,
    counterexample="zeros beyond the ends (zero padding) drain the field",
    refute=lambda: _drift(
        "zero padding",
        lambda u: diffuse(u, 0.5, steps=STEPS, boundary=Boundary.FIXED),
    ),
)
