"""The slope of the field decays exponentially, at the rate of the spectral gap.

    ‖∇u(t)‖ ≤ e^{−μt} ‖∇u(0)‖,    μ = 4 sin²(π / 2n),    u(t) = e^{tL} u(0)

Derivation: docs/equations.md §6.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depthpde.operators.energy import dirichlet_energy
from depthpde.operators.laplacian import laplacian_matrix
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import fit_slope, random_field

SITES = 32
GAP = 4 * math.sin(math.pi / (2 * SITES)) ** 2


def _slopes(times: Tensor, conductance: Tensor | None = None) -> Tensor:
    """Give ‖∇u(t)‖ under the exact heat flow, with a conductance on each edge."""
    flow = laplacian_matrix(SITES, weights=conductance)
    u = random_field("gradient_decay", length=SITES, dim=2)
    states = torch.linalg.matrix_exp(times[:, None, None] * flow) @ u
    return (2 * dirichlet_energy(states)).sqrt()


def _rate(name: str, conductance: Tensor | None = None) -> Check:
    times = torch.linspace(600, 900, 16, dtype=torch.float64)
    return Check(
        quantity=f"late decay rate of ‖∇u‖ on {SITES} sites, {name}",
        predicted=GAP,
        measured=-fit_slope(times, _slopes(times, conductance).log()),
        tolerance=1e-6,
    )


def _envelope() -> Check:
    times = torch.linspace(0, 300, 61, dtype=torch.float64)
    slopes = _slopes(times)
    bound = torch.exp(-GAP * times) * slopes[0]
    return Check(
        quantity="largest ‖∇u(t)‖ / (e^{−μt} ‖∇u(0)‖), t from 0 to 300",
        predicted=1.0,
        measured=float((slopes / bound).max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


def _cut_in_the_middle() -> Tensor:
    conductance = torch.ones(SITES - 1, dtype=torch.float64)
    conductance[SITES // 2 - 1] = 0.02
    return conductance


CLAIM = Claim(
    name="gradient-decay",
    statement="The slope of the field decays exponentially; the rate is the spectral gap.",
    equation="‖∇u(t)‖ ≤ e^{−μt} ‖∇u(0)‖,  μ = 4 sin²(π/2n)",
    source="Paper A v2, Theorem A.2 (exponential decay of the gradient norm)",
    measure=lambda: ClaimEvidence(checks=(_rate("whole chain"), _envelope())),
    counterexample="a nearly cut edge in the middle closes the gap: the halves wait for each other",
    refute=lambda: _rate("bottleneck in the middle", _cut_in_the_middle()),
)
