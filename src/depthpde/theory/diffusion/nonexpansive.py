"""Diffusion never moves two fields apart.

    ‖D_r u − D_r v‖ ≤ ‖u − v‖        for 0 ≤ r ≤ 1/2

Derivation: docs/equations.md §3.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.shapes import Field
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import explicit_step, matrix_of, random_field, spectral_norm


def _worst_pair(name: str, step: Callable[[Field], Field]) -> Check:
    first = random_field("nonexpansive/first", batch=256, dim=1)
    second = random_field("nonexpansive/second", batch=256, dim=1)
    # White fields rarely meet the roughest mode, so half of the pairs differ by it alone.
    rough = (-1.0) ** torch.arange(first.shape[1], dtype=torch.float64)[:, None]
    second[128:] = first[128:] + rough
    apart = torch.linalg.vector_norm(step(first) - step(second), dim=(1, 2))
    before = torch.linalg.vector_norm(first - second, dim=(1, 2))
    return Check(
        quantity=f"largest ‖Du − Dv‖ / ‖u − v‖ over 256 pairs, {name}",
        predicted=1.0,
        measured=float((apart / before).max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


def _norm(ratio: float) -> Check:
    return Check(
        quantity=f"‖D‖₂, r = {ratio:g}",
        predicted=1.0,
        measured=spectral_norm(matrix_of(lambda u: diffuse(u, ratio))),
        tolerance=1e-12,
    )


def _measure() -> ClaimEvidence:
    pairs = [
        _worst_pair(f"r = {ratio:g}", lambda u, r=ratio: diffuse(u, r))  # type: ignore[misc]
        for ratio in (0.5, 0.25, 0.05)
    ]
    return ClaimEvidence(checks=(*pairs, _norm(0.5), _norm(0.25)))


CLAIM = Claim(
    name="nonexpansive",
    statement="One diffusion step never moves two fields further apart.",
    equation="‖D_r u − D_r v‖ ≤ ‖u − v‖,  0 ≤ r ≤ 1/2",
    source="Paper A v3, layer 1 (spectral non-expansiveness)",
    measure=_measure,
    counterexample="r = 0.6, beyond the bound",
    refute=lambda: _worst_pair("r = 0.6", lambda u: explicit_step(u, 0.6)),
)
