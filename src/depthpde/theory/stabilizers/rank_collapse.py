"""Attention without residuals collapses to rank one, doubly exponentially.

    res(u) = u − 1·mean(u)        ‖res(A(u))‖ = O(‖res(u)‖³)        3, 9, 27 … digits by layer

Rows of softmax attention differ only through res(u) W res(u)ᵀ, which is quadratic, and act on
res(u) again (Dong et al.). With the residual the distance is kept to first order: exponent one.
"""

from __future__ import annotations

import math

import torch

from depthpde.operators.interaction import attention_weights
from depthpde.shapes import Field
from depthpde.theory.claim import Check, Claim, ClaimEvidence, LineRole, Plot, Relation, line
from depthpde.theory.measurement import random_field

SITES, FEATURES, SMALL = 16, 8, 1e-2


def _apart(u: Field) -> float:
    return float((u - u.mean(dim=1, keepdim=True)).norm())


def _near_rank_one(size: float) -> Field:
    spread = random_field("rank_collapse", length=SITES, dim=FEATURES)
    return torch.ones_like(spread) + size * (spread - spread.mean(dim=1, keepdim=True))


def _layer(u: Field, *, residual: bool) -> Field:
    mixed = attention_weights(u, u) @ u
    return u + mixed if residual else mixed


def _exponent(*, residual: bool) -> Check:
    before, after = [], []
    for size in (SMALL, SMALL / 2):
        u = _near_rank_one(size)
        before.append(_apart(u))
        after.append(_apart(_layer(u, residual=residual)))
    return Check(
        quantity=f"exponent p of ‖res(A u)‖ ~ ‖res u‖^p, {'with' if residual else 'no'} residual",
        predicted=3.0,
        measured=math.log(after[0] / after[1]) / math.log(before[0] / before[1]),
        tolerance=0.05,
    )


def _depths(*, residual: bool, layers: int = 5) -> list[float]:
    u = 0.5 * random_field("rank_collapse", length=SITES, dim=FEATURES)
    found = [_apart(u) / float(u.norm())]
    for _ in range(layers):
        u = _layer(u, residual=residual)
        found.append(max(_apart(u) / float(u.norm()), 1e-17))
    return found


def _kept() -> Check:
    return Check(
        quantity="distance to rank one after 5 layers with residuals, relative",
        predicted=1e-3,
        measured=_depths(residual=True)[-1],
        comparison=Relation.AT_LEAST,
    )


def _plot() -> Plot:
    depth = list(range(6))
    return Plot(
        title="Without residuals the rank is gone after a few layers",
        x_label="layer",
        y_label="‖res u‖ / ‖u‖",
        series=(
            line("without residuals", depth, _depths(residual=False), LineRole.WARNING),
            line("with residuals", depth, _depths(residual=True)),
        ),
        description="Distance to rank one by layer: it falls faster than exponentially without "
        "residuals and slowly with them.",
        log_y=True,
    )


CLAIM = Claim(
    name="rank-collapse",
    statement="Without residuals attention cubes the distance to rank one; with them it is kept.",
    equation="‖res(A(u))‖ = O(‖res(u)‖³)",
    source="Paper B (no residual: catastrophic drift), with the rate of Dong et al. 2021",
    measure=lambda: ClaimEvidence(checks=(_exponent(residual=False), _kept()), plots=(_plot(),)),
    counterexample="the same attention with a residual: exponent one",
    refute=lambda: _exponent(residual=True),
)
