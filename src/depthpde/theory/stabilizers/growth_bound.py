"""Perturbations grow at most like the exponential of the integrated logarithmic norm.

    ‖δ(T)‖ ≤ ‖δ(0)‖ exp ∫_0^T μ(J(u(t))) dt        μ(J) = λ_max((J + Jᵀ)/2)

Along the accurate solution. Eigenvalues of J would not do: a matrix that is not normal lets
perturbations grow although every eigenvalue decays. Normalization changes the number: the check
says by how much.
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
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import jacobian_of, random_field

SITES, FEATURES, END, TINY = 4, 4, 1.5, 1e-5
NODES = 25


def _equation(norm: Norm) -> Equation:
    draw = generator(0, "theory", "growth_bound")
    weights = 1.5 * torch.randn(FEATURES, FEATURES, generator=draw, dtype=torch.float64)
    return Equation(
        interaction=lambda u: attention_weights(u, u) @ u @ weights,
        reaction=torch.tanh,
        stabilizer=Stabilizer(norm=norm),
    )


def _shear() -> Equation:
    shear = torch.diag(torch.full((FEATURES - 1,), 8.0, dtype=torch.float64), 1)
    matrix = shear - torch.eye(FEATURES, dtype=torch.float64)
    return Equation(reaction=lambda u: u @ matrix.mT, stabilizer=Stabilizer(norm=Norm.NONE))


def _log_norm(jacobian: Tensor) -> float:
    return float(torch.linalg.eigvalsh(0.5 * (jacobian + jacobian.mT))[-1])


def _abscissa(jacobian: Tensor) -> float:
    return float(torch.linalg.eigvals(jacobian).real.max())


def _growth(equation: Equation, number: Callable[[Tensor], float]) -> tuple[float, float]:
    """Give log(‖δ(T)‖/‖δ(0)‖) of the worst of 12 directions, and the integral of a number of J."""
    u0 = random_field("growth_bound", length=SITES, dim=FEATURES)
    away = random_field("growth_bound/away", batch=12, length=SITES, dim=FEATURES)
    away = TINY * away / away.norm(dim=(1, 2), keepdim=True)
    times = torch.linspace(0, END, NODES, dtype=torch.float64)
    both = simulate(equation, torch.cat([u0, u0 + away]), times, rtol=1e-10)
    grown = (both.final[1:] - both.final[:1]).norm(dim=(1, 2)) / TINY

    def rate(u: Field) -> Field:
        return equation.rate(0.0, u)

    values = [number(jacobian_of(rate, state[:1])) for state in both.states]
    return float(grown.max().log()), float(torch.trapezoid(torch.tensor(values).double(), times))


def _bound(equation: Equation, number: Callable[[Tensor], float], name: str) -> Check:
    grown, integral = _growth(equation, number)
    return Check(
        quantity=f"log growth of a perturbation over t = {END:g} against the integral, {name}",
        predicted=integral,
        measured=grown,
        comparison=Relation.AT_MOST,
        tolerance=1e-3,
    )


def _tamed() -> Check:
    free = _growth(_equation(Norm.NONE), _log_norm)[1]
    normed = _growth(_equation(Norm.PRE), _log_norm)[1]
    return Check(
        quantity="e^(bound with pre-norm − bound without): by how much the norm tames growth",
        predicted=1.0,
        measured=math.exp(normed - free),
        comparison=Relation.AT_MOST,
    )


CLAIM = Claim(
    name="growth-bound",
    statement="Perturbations grow at most like exp of the integrated logarithmic norm.",
    equation="‖δ(T)‖ ≤ ‖δ(0)‖ exp ∫ λ_max((J + Jᵀ)/2) dt",
    source="Paper B (stability of the flow), with the bound of Dahlquist and Lozinskii",
    measure=lambda: ClaimEvidence(
        checks=(
            _bound(_equation(Norm.PRE), _log_norm, "pre-norm"),
            _bound(_equation(Norm.NONE), _log_norm, "no norm"),
            _bound(_shear(), _log_norm, "a shear"),
            _tamed(),
        )
    ),
    counterexample="the largest real part of J's eigenvalues in place of its logarithmic norm",
    refute=lambda: _bound(_shear(), _abscissa, "a shear by its eigenvalues"),
)
