"""Tokens at equal angles close at an exactly known rate, and a crowd of tokens becomes one point.

    ρ′ = 2 e^{βρ} (1 − ρ)((n − 1)ρ + 1) / (e^β + (n − 1) e^{βρ})        ρ: the pairwise cosine

Projected self-attention with Q = K = V = I (Geshkovski et al.).
"""

from __future__ import annotations

from dataclasses import replace

from depthpde.operators.interaction import attention_weights
from depthpde.simulator.simulate import simulate
from depthpde.simulator.systems import SYSTEMS
from depthpde.theory.claim import Check, Claim, ClaimEvidence

RTOL = 1e-8


def _cosine(sign: float) -> Check:
    """Compare the cosine at the end; a sign of −1 makes tokens repel each other."""
    system = SYSTEMS["equiangular"]
    beta = system.parameters["beta"]
    equation = replace(
        system.equation,
        interaction=lambda u: sign * (attention_weights(u, u, gain=beta) @ u),
    )
    known = system.known(simulate(equation, system.u0, system.times, rtol=RTOL))[0]
    return Check(
        quantity=f"pairwise cosine of 8 equiangular tokens at t = 4, V = {sign:+g} I",
        predicted=known.predicted,
        measured=known.computed,
        tolerance=1e-6,
    )


def _one_cluster() -> Check:
    system = SYSTEMS["clustering"]
    known = system.known(simulate(system, rtol=1e-6))[0]
    return Check(
        quantity="clusters of 32 tokens on the sphere at t = 30",
        predicted=known.predicted,
        measured=known.computed,
    )


CLAIM = Claim(
    name="clustering",
    statement="Tokens under attention on the sphere cluster, at the exact equiangular rate.",
    equation="ρ′ = 2e^{βρ}(1−ρ)((n−1)ρ+1) / (e^β+(n−1)e^{βρ})",
    source="Paper B (attention as a nonlocal term), with the rate of Geshkovski et al. 2023",
    measure=lambda: ClaimEvidence(checks=(_cosine(1.0), _one_cluster())),
    counterexample="values of the opposite sign: tokens repel each other",
    refute=lambda: _cosine(-1.0),
)
