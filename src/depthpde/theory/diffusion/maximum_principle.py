"""Diffusion makes no new extremes.

    min_j u_j ≤ (D_r u)_i ≤ max_j u_j        iff every entry of D_r is ≥ 0, that is r ≤ 1/2

Derivation: docs/equations.md §4.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.shapes import Field
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH, explicit_step, matrix_of, random_field


def _overshoot(name: str, step: Callable[[Field], Field]) -> Check:
    u = random_field("maximum_principle", batch=256, dim=1)
    u[:64] = 0
    u[:64, torch.arange(64), 0] = 1  # a spike at every site
    after = step(u)
    above = (after.amax(dim=1) - u.amax(dim=1)).max()
    below = (u.amin(dim=1) - after.amin(dim=1)).max()
    return Check(
        quantity=f"largest overshoot over 256 fields, {name}",
        predicted=0.0,
        measured=max(float(above), float(below), 0.0),
        comparison=Relation.AT_MOST,
        tolerance=1e-14,  # a few roundings of values up to 4
    )


def _smallest_entry() -> Check:
    entries = matrix_of(lambda u: diffuse(u, 0.5))
    return Check(
        quantity=f"smallest entry of D on {LENGTH} sites, r = 1/2",
        predicted=0.0,
        measured=float(entries.min()),
        tolerance=1e-15,
    )


def _conductances() -> Check:
    ratio = 0.5 * torch.sigmoid(
        4 * random_field("maximum_principle/edges", length=LENGTH - 1, dim=1)
    )
    return _overshoot("a ratio of its own on each edge", lambda u: diffuse(u, ratio, steps=8))


CLAIM = Claim(
    name="maximum-principle",
    statement="Diffusion never leaves the range of values it was given.",
    equation="min u ≤ D_r u ≤ max u,  0 ≤ r ≤ 1/2",
    source="Paper A v3, layer 1; stated with proof in docs/equations.md §4",
    measure=lambda: ClaimEvidence(
        checks=(
            _overshoot("r = 1/2", lambda u: diffuse(u, 0.5)),
            _overshoot("r = 1/4, 8 steps", lambda u: diffuse(u, 0.25, steps=8)),
            _conductances(),
            _smallest_entry(),
        )
    ),
    counterexample="r = 0.55: a spike overshoots below zero",
    refute=lambda: _overshoot("r = 0.55", lambda u: explicit_step(u, 0.55)),
)
