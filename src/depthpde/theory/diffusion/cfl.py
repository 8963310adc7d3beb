"""The CFL condition of the explicit step.

    ‖(I + rL)ˢ‖₂ ≤ 1  for every s        iff   r ≤ 2/|λ|_max,   which is 1/2 as n grows

Derivation: docs/equations.md §3.
"""

from __future__ import annotations

import math

import torch

from depthpde.operators.laplacian import laplacian_matrix
from depthpde.theory.claim import Check, Claim, ClaimEvidence, LineRole, Plot, Relation, line
from depthpde.theory.measurement import LENGTH, spectral_norm

STEPS = 100


def _gain(ratio: float, steps: int = 1) -> float:
    one = torch.eye(LENGTH, dtype=torch.float64) + ratio * laplacian_matrix(LENGTH)
    return spectral_norm(torch.linalg.matrix_power(one, steps))


def _critical_ratio() -> Check:
    low, high = 0.4, 0.6
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _gain(middle) <= 1 + 1e-13 else (low, middle)
    return Check(
        quantity=f"largest stable ratio on {LENGTH} sites, by bisection",
        predicted=1 / (2 * math.sin(math.pi * (LENGTH - 1) / (2 * LENGTH)) ** 2),
        measured=low,
        tolerance=1e-9,
    )


def _bounded(ratio: float) -> Check:
    return Check(
        quantity=f"gain of {STEPS} explicit steps, r = {ratio:g}",
        predicted=1.0,
        measured=_gain(ratio, STEPS),
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


def _growth_beyond() -> Check:
    ratio = 0.51
    rate = abs(1 - 4 * ratio * math.sin(math.pi * (LENGTH - 1) / (2 * LENGTH)) ** 2)
    return Check(
        quantity=f"gain of {STEPS} explicit steps, r = {ratio:g}",
        predicted=rate**STEPS,
        measured=_gain(ratio, STEPS),
        tolerance=1e-9 * rate**STEPS,
    )


def _keeps_signs() -> Check:
    one = torch.eye(LENGTH, dtype=torch.float64) + 0.25 * laplacian_matrix(LENGTH)
    return Check(
        quantity="smallest multiplier of a mode, r = 1/4",
        predicted=0.0,
        measured=float(torch.linalg.eigvalsh(one).min()),
        comparison=Relation.AT_LEAST,
        tolerance=1e-12,
    )


def _plot() -> Plot:
    ratios = [0.02 * k for k in range(1, 26)]
    beyond = [0.5 + 0.005 * k for k in range(11)]
    return Plot(
        title=f"Stable up to r = 1/2: gain of {STEPS} steps",
        x_label="ratio r",
        y_label="largest gain",
        log_y=True,
        series=(
            line("r ≤ 1/2", ratios, [_gain(r, STEPS) for r in ratios]),
            line("r > 1/2", beyond, [_gain(r, STEPS) for r in beyond], LineRole.WARNING),
        ),
        description=f"The gain of {STEPS} steps is exactly 1 up to r = 1/2 and then grows "
        f"exponentially, to {_gain(0.55, STEPS):.1e} at r = 0.55.",
    )


CLAIM = Claim(
    name="cfl",
    statement="Explicit diffusion is stable up to r = 1/2 and breaks just beyond; up to 1/4 no "
    "mode changes its sign.",
    equation="‖(I + rL)ˢ‖₂ ≤ 1  for all s  ⇔  r ≤ 1/(2 sin²(π(n−1)/2n)) → 1/2",
    source="Paper A v2, Theorem 3.3 (CFL condition); v3, step size below 1/2",
    measure=lambda: ClaimEvidence(
        checks=(_critical_ratio(), _bounded(0.5), _growth_beyond(), _keeps_signs()),
        plots=(_plot(),),
    ),
    counterexample="the same steps at r = 0.51",
    refute=lambda: _bounded(0.51),
)
