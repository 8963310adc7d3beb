"""Padding is a wall: what stands behind it never reaches a real token.

    ∂(Dˢu)_i / ∂u_j = 0        for i real, j padding, any number of steps s

Derivation: docs/equations.md §4.
"""

from __future__ import annotations

import torch

from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.shapes import Mask
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH, random_field

REAL, STEPS = 40, 16


def _mask() -> Mask:
    return torch.arange(LENGTH)[None] < REAL


def _leak(name: str, valid_mask: Mask | None) -> Check:
    u = random_field("padding")
    other = u.clone()
    other[:, REAL:] = 1e6
    first, second = (
        diffuse(each, 0.5, steps=STEPS, valid_mask=valid_mask)[:, :REAL] for each in (u, other)
    )
    return Check(
        quantity=f"change of real tokens when padding changes by 10⁶, {name}",
        predicted=0.0,
        measured=float((first - second).abs().max()),
    )


def _as_if_cut_off() -> Check:
    u = random_field("padding")
    padded = diffuse(u, 0.5, steps=STEPS, valid_mask=_mask())[:, :REAL]
    alone = diffuse(u[:, :REAL], 0.5, steps=STEPS)
    return Check(
        quantity="difference from the same sequence without its padding",
        predicted=0.0,
        measured=float((padded - alone).abs().max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-14,
    )


CLAIM = Claim(
    name="padding",
    statement="Padding is a no-flux wall: a real token never sees what stands behind it.",
    equation="∂(Dˢu)_i/∂u_j = 0,  i real, j padding",
    source="Our own: the Neumann end of paper A v3, moved to where the sequence ends",
    measure=lambda: ClaimEvidence(checks=(_leak("masked", _mask()), _as_if_cut_off())),
    counterexample="the same steps without the mask",
    refute=lambda: _leak("not masked", None),
)
