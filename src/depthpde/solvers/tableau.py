"""Runge–Kutta methods as data, each with the order it declares.

    k_i = F(u + dt Σ_j a_ij k_j,  t + c_i dt)        u(t + dt) ≈ u + dt Σ_i b_i k_i

A method is its numbers: nothing else in the solvers knows the name of one. The declared order is
checked against the order conditions, and the declared interval against the stability function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from depthpde.errors import check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Tableau:
    """The coefficients of one Runge–Kutta method."""

    name: str
    """How a person asks for it."""
    order: int
    """The error of one step is O(dt^(order + 1))."""
    real_axis: float
    """u′ = −λu is damped while λ dt ≤ real_axis; infinite if it always is."""
    a: tuple[tuple[float, ...], ...]
    """What stage i takes of stage j."""
    b: tuple[float, ...]
    """What the step takes of stage i."""
    c: tuple[float, ...]
    """When stage i looks, in units of dt."""
    error: tuple[float, ...] = ()
    """A pair's second row, b minus the weights of the lower order: what the step's error is
    estimated from. Empty for a method that does not know its error."""
    error_order: int = 0
    """The order of the method that the second row compares with."""

    @property
    def is_explicit(self) -> bool:
        """Whether every stage needs only those before it."""
        return all(self.a[i][i] == 0 for i in range(len(self.b)))


EULER = Tableau(name="euler", order=1, real_axis=2.0, a=((0.0,),), b=(1.0,), c=(0.0,))
MIDPOINT = Tableau(
    name="midpoint",
    order=2,
    real_axis=2.0,
    a=((0.0, 0.0), (0.5, 0.0)),
    b=(0.0, 1.0),
    c=(0.0, 0.5),
)
HEUN = Tableau(
    name="heun",
    order=2,
    real_axis=2.0,
    a=((0.0, 0.0), (1.0, 0.0)),
    b=(0.5, 0.5),
    c=(0.0, 1.0),
)
RK4 = Tableau(
    name="rk4",
    order=4,
    real_axis=2.785293563405282,  # the real root of 1 − x + x²/2 − x³/6 + x⁴/24 = 1
    a=(
        (0.0, 0.0, 0.0, 0.0),
        (0.5, 0.0, 0.0, 0.0),
        (0.0, 0.5, 0.0, 0.0),
        (0.0, 0.0, 1.0, 0.0),
    ),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    c=(0.0, 0.5, 0.5, 1.0),
)
BACKWARD_EULER = Tableau(
    name="backward_euler", order=1, real_axis=math.inf, a=((1.0,),), b=(1.0,), c=(1.0,)
)
CRANK_NICOLSON = Tableau(
    name="crank_nicolson",
    order=2,
    real_axis=math.inf,
    a=((0.0, 0.0), (0.5, 0.5)),
    b=(0.5, 0.5),
    c=(0.0, 1.0),
)

TABLEAUS: dict[str, Tableau] = {
    each.name: each for each in (EULER, MIDPOINT, HEUN, RK4, BACKWARD_EULER, CRANK_NICOLSON)
}


def find_tableau(method: Tableau | str) -> Tableau:
    """Return the tableau that a name stands for, or the one that was given."""
    if isinstance(method, Tableau):
        return method
    return TABLEAUS[check_name("method", method, TABLEAUS)]


def order_by_conditions(tableau: Tableau) -> int:
    """Find the highest order, up to 5, whose conditions the coefficients meet.

    1: Σb = 1        2: Σbc = 1/2        3: Σbc² = 1/3,  bᵀAc = 1/6
    4: Σbc³ = 1/4,  Σ b c Ac = 1/8,  bᵀAc² = 1/12,  bᵀAAc = 1/24
    5: Σbc⁴ = 1/5,  Σ b c² Ac = 1/10,  Σ b (Ac)² = 1/20,  Σ b c Ac² = 1/15,  bᵀAc³ = 1/20,
       Σ b c AAc = 1/30,  bᵀA(c Ac) = 1/40,  bᵀAAc² = 1/60,  bᵀAAAc = 1/120
    """
    A, b, c = _matrices(tableau)
    Ac = A @ c
    conditions: list[list[tuple[Tensor, float]]] = [
        [(b.sum(), 1.0)],
        [(b @ c, 1 / 2)],
        [(b @ c**2, 1 / 3), (b @ A @ c, 1 / 6)],
        [
            (b @ c**3, 1 / 4),
            ((b * c) @ A @ c, 1 / 8),
            (b @ A @ c**2, 1 / 12),
            (b @ A @ A @ c, 1 / 24),
        ],
        [
            (b @ c**4, 1 / 5),
            ((b * c**2) @ Ac, 1 / 10),
            (b @ Ac**2, 1 / 20),
            ((b * c) @ A @ c**2, 1 / 15),
            (b @ A @ c**3, 1 / 20),
            ((b * c) @ A @ Ac, 1 / 30),
            (b @ A @ (c * Ac), 1 / 40),
            (b @ A @ A @ c**2, 1 / 60),
            (b @ A @ A @ Ac, 1 / 120),
        ],
    ]
    order = 0
    for group in conditions:
        if any(abs(float(got) - wanted) > 1e-13 for got, wanted in group):
            break
        order += 1
    return order


def stability_function(tableau: Tableau, z: float) -> float:
    """Give the factor by which one step multiplies the solution of u′ = λu, z = λ dt.

    R(z) = 1 + z bᵀ (I − zA)⁻¹ 1
    """
    A, b, _ = _matrices(tableau)
    ones = torch.ones_like(b)
    return float(1 + z * b @ torch.linalg.solve(torch.eye(len(b)).to(A) - z * A, ones))


def _matrices(tableau: Tableau) -> tuple[Tensor, Tensor, Tensor]:
    A, b, c = (
        torch.tensor(each, dtype=torch.float64) for each in (tableau.a, tableau.b, tableau.c)
    )
    return A, b, c
