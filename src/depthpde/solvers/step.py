"""One explicit or implicit Runge–Kutta step.

    u(t + dt) ≈ u + dt Σ_i b_i k_i

Stages are taken one after another. A stage that contains itself (a_ii ≠ 0) is the solution of

    y − dt a_ii F(y, t_i) = v

found by the term's own solver where it has one, else by Newton's method with the dense Jacobian:
exact and differentiable, and meant for small systems.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.shapes import Field
from depthpde.solvers.tableau import Tableau
from depthpde.solvers.term import Rhs, Term

NEWTON_UNKNOWNS = 4096
"""Beyond this many unknowns the dense Jacobian is refused."""
NEWTON_ROUNDS = 25


def step(term: Term, u: Field, t: float, dt: float, tableau: Tableau) -> Field:
    """Advance the field by one step.

        k_i = F(u + dt Σ_{j≤i} a_ij k_j, t + c_i dt),    u ← u + dt Σ_i b_i k_i

    Of the tableau's order in dt. Differentiable in u and in whatever the term depends on.

    Args:
        term: What changes the field.
        u: The field at time t.
        t: The time.
        dt: The step.
        tableau: The method.
    """
    slopes: list[Tensor] = []
    for row, at in zip(tableau.a, tableau.c, strict=True):
        known = _combine(u, dt, row[: len(slopes)], slopes)
        own = dt * row[len(slopes)]
        if own == 0:
            slopes.append(term.rhs(known, t + at * dt))
        else:
            slopes.append((_solve(term, known, own, t + at * dt) - known) / own)
    return _combine(u, dt, tableau.b, slopes)


def newton(rhs: Rhs, v: Field, scale: float, t: float) -> Field:
    """Solve one implicit stage by Newton's method.

        y ← y − J⁻¹ (y − scale F(y, t) − v),    J = I − scale ∂F/∂y

    Converges quadratically near the solution. The last update is differentiable: with J held
    still it carries exactly the gradient of the implicit function theorem.
    """
    if v.numel() > NEWTON_UNKNOWNS:
        raise ValueError(
            f"`solve` must be given for an implicit step of {v.numel()} unknowns: the dense "
            f"Jacobian is for at most {NEWTON_UNKNOWNS}; pass Term(solve=…) or an explicit method"
        )
    tolerance = 1e3 * torch.finfo(v.dtype).eps * (1 + float(v.detach().abs().max()))
    y = v.detach().clone()
    size = float("inf")
    for _ in range(NEWTON_ROUNDS):
        jacobian = _jacobian(rhs, y, scale, t)
        if size <= tolerance:
            return _update(rhs, y, v, scale, t, jacobian)
        with torch.no_grad():
            y = _update(rhs, y, v, scale, t, jacobian)
            size = float((y - scale * rhs(y, t) - v).abs().max())
    raise ValueError(
        f"the implicit step at t = {t:g} did not converge: residual {size:.2g} after "
        f"{NEWTON_ROUNDS} rounds of Newton's method; use a smaller dt"
    )


def _solve(term: Term, v: Field, scale: float, t: float) -> Field:
    if term.solve is not None:
        return term.solve(v, scale, t)
    return newton(term.rhs, v, scale, t)


def _combine(u: Field, dt: float, weights: tuple[float, ...], slopes: list[Tensor]) -> Field:
    for weight, slope in zip(weights, slopes, strict=True):
        if weight:
            u = u + (dt * weight) * slope
    return u


def _update(rhs: Rhs, y: Field, v: Field, scale: float, t: float, jacobian: Tensor) -> Field:
    residual = y - scale * rhs(y, t) - v
    correction: Tensor = torch.linalg.solve(jacobian, residual.flatten())
    return y - correction.reshape(v.shape)


def _jacobian(rhs: Rhs, y: Field, scale: float, t: float) -> Tensor:
    def flat(w: Tensor) -> Tensor:
        return rhs(w.reshape(y.shape), t).flatten()

    slope: Tensor = torch.autograd.functional.jacobian(flat, y.flatten())  # type: ignore[no-untyped-call]
    return torch.eye(y.numel(), dtype=y.dtype, device=y.device) - scale * slope
