"""The block is the gradient flow of an energy, if its interaction kernel is symmetric.

    u_t = αLu + K(u)u + R(u) = −∇E[u],      E = α E_Dirichlet + E_interaction + Σ V(u)

A vector field has an energy exactly where its Jacobian is symmetric. Sinkhorn attention with
equal queries, keys and values passes; softmax attention does not. Derivation:
docs/equations.md §11.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.operators.energy import dirichlet_energy
from depthpde.operators.interaction import (
    Kernel,
    attention_weights,
    interact,
    interaction_energy,
)
from depthpde.operators.laplacian import laplacian
from depthpde.operators.reaction import allen_cahn, allen_cahn_potential
from depthpde.shapes import Field
from depthpde.solvers.integrate import integrate
from depthpde.solvers.tolerance import Tolerance
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import jacobian_of, random_field

ALPHA, GAIN, ROUNDS = 0.5, 0.5, 60
SITES, FEATURES = 8, 3


def _flow(u: Field, kernel: Kernel) -> Field:
    weights = attention_weights(u, u, kernel=kernel, gain=GAIN, iterations=ROUNDS)
    return ALPHA * laplacian(u) + interact(u, weights) + allen_cahn(u)


def _energy(u: Field) -> Tensor:
    potential = allen_cahn_potential(u).sum(dim=(1, 2))
    interaction = interaction_energy(u, gain=GAIN, iterations=ROUNDS)
    return ALPHA * dirichlet_energy(u) + interaction + potential


def _field() -> Field:
    return random_field("gradient_flow", length=SITES, dim=FEATURES)


def _asymmetry(kernel: Kernel) -> Check:
    jacobian = jacobian_of(lambda u: _flow(u, kernel), _field())
    return Check(
        quantity=f"asymmetry of the Jacobian ‖J − Jᵀ‖ / ‖J‖, {kernel.value} kernel",
        predicted=0.0,
        measured=float((jacobian - jacobian.mT).norm() / jacobian.norm()),
        comparison=Relation.AT_MOST,
        tolerance=1e-9,
    )


def _is_minus_gradient() -> Check:
    u = _field().requires_grad_()
    (slope,) = torch.autograd.grad(_energy(u).sum(), u)
    rate = _flow(u, Kernel.SINKHORN)
    return Check(
        quantity="‖F + ∇E‖ / ‖F‖, sinkhorn kernel",
        predicted=0.0,
        measured=float(((rate + slope).norm() / rate.norm()).detach()),
        comparison=Relation.AT_MOST,
        tolerance=1e-9,
    )


def _never_rises() -> Check:
    times = torch.linspace(0, 3, 31)
    path = integrate(
        lambda u, t: _flow(u, Kernel.SINKHORN), _field(), times, method="auto",
        tolerance=Tolerance(rtol=1e-8),
    )  # fmt: skip
    energies = torch.cat([_energy(state) for state in path.states])
    return Check(
        quantity="largest rise of E between two of 31 times along the flow, rtol 1e-8",
        predicted=0.0,
        measured=float(energies.diff().max()),
        comparison=Relation.AT_MOST,
    )


CLAIM = Claim(
    name="gradient-flow",
    statement="With a symmetric kernel the block descends an energy; softmax attention has none.",
    equation="αLu + K(u)u + R(u) = −∇E[u]  ⇔  J = Jᵀ",
    source="Paper A v2, Theorem 3.1 (unified dynamical equation), with the hypothesis it needs",
    measure=lambda: ClaimEvidence(
        checks=(_asymmetry(Kernel.SINKHORN), _is_minus_gradient(), _never_rises())
    ),
    counterexample="softmax attention: its kernel is not symmetric",
    refute=lambda: _asymmetry(Kernel.SOFTMAX),
)
