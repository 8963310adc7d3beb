"""A residual is a consistent time step, and an explicit one.

    u ← u + dt F(u)  →  the flow of u′ = F(u), at first order        u ← F(u) has no such limit

Paper B says that residuals enforce *implicit* time stepping. The stable interval decides: explicit
Euler damps u′ = −λu only while λ dt ≤ 2, implicit Euler for every λ. A residual block has the
first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from depthpde.layers.stabilizer import Norm, Stabilizer
from depthpde.operators.interaction import attention_weights
from depthpde.seeds import generator
from depthpde.shapes import Field
from depthpde.simulator.equation import Equation
from depthpde.simulator.simulate import simulate
from depthpde.solvers.step import step
from depthpde.solvers.tableau import BACKWARD_EULER
from depthpde.solvers.term import Term
from depthpde.theory.claim import Check, Claim, ClaimEvidence
from depthpde.theory.measurement import random_field

BLOCKS, SITES, FEATURES = (32, 64), 12, 6
BARE = Stabilizer(norm=Norm.NONE)


def _force(u: Field) -> Field:
    weights = torch.randn(
        FEATURES, FEATURES, generator=generator(0, "theory", "residual"), dtype=torch.float64
    )
    return attention_weights(u, u) @ u @ (0.5 * weights) + torch.tanh(u)


def _order(block: Callable[[Field, float], Field], name: str) -> Check:
    """Observe how fast a stack of blocks of depth time one approaches the flow."""
    u0 = random_field("residual", length=SITES, dim=FEATURES)
    equation = Equation(reaction=_force, stabilizer=BARE)
    exact = simulate(equation, u0, (0.0, 1.0), rtol=1e-10).final
    errors = []
    for blocks in BLOCKS:
        u = u0
        for _ in range(blocks):
            u = block(u, 1.0 / blocks)
        errors.append(float((u - exact).norm()))
    return Check(
        quantity=f"order at which twice the blocks approach the flow, {name}",
        predicted=1.0,
        measured=math.log2(errors[0] / errors[1]),
        tolerance=0.1,
    )


def _stable_until(block: Callable[[Tensor, float], Tensor]) -> float:
    """Find the largest λ up to 10⁶ for which a block of dt = 1 damps u′ = −λu."""
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    low, high = 0.5, 1e6
    if float(block(one, high).abs()) <= 1:
        return high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(block(one, middle).abs()) <= 1 else (low, middle)
    return low


def _implicit(u: Tensor, rate: float) -> Tensor:
    return step(Term(name="decay", rhs=lambda v, t: -rate * v), u, 0.0, 1.0, BACKWARD_EULER)


def _interval() -> Check:
    return Check(
        quantity="stable interval λ of a residual block u + F(u), F = −λu: explicit Euler's",
        predicted=2.0,
        measured=_stable_until(lambda u, rate: u + (-rate * u)),
        tolerance=1e-9,
    )


def _unbounded() -> Check:
    return Check(
        quantity="stable interval of implicit Euler, searched up to 10⁶",
        predicted=1e6,
        measured=_stable_until(_implicit),
        tolerance=1e-9,
    )


CLAIM = Claim(
    name="residual-step",
    statement="A residual block is one explicit Euler step; without the residual there is no flow.",
    equation="u + dt F(u) → u(t + dt),  order 1;  |1 − λ dt| ≤ 1 ⇔ λ dt ≤ 2",
    source="Paper B, S(u) (residual); its word 'implicit' is not what the interval shows",
    measure=lambda: ClaimEvidence(
        checks=(
            _order(lambda u, dt: u + dt * _force(u), "with the residual"),
            _interval(),
            _unbounded(),
        )
    ),
    counterexample="the same blocks without the residual, u ← F(u)",
    refute=lambda: _order(lambda u, dt: _force(u), "without the residual"),
)
