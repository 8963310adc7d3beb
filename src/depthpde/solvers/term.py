"""One named term of the equation, with what it knows about itself.

    u_t = F_1(u, t) + F_2(u, t) + …

A term always gives its rate of change. It may also give its exact flow, a solver for its implicit
step, and the limit that an explicit step must keep: what it gives is used, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.laplacian import laplacian
from depthpde.operators.stability import Scheme
from depthpde.shapes import Field
from depthpde.solvers.tableau import Tableau

Rhs = Callable[[Field, float], Field]
"""F(u, t), the rate of change."""
Solve = Callable[[Field, float, float], Field]
"""solve(v, scale, t): the y with y − scale · F(y, t) = v."""
Flow = Callable[[Field, float, float], Field]
"""flow(u, t, dt): the exact solution of this term alone after dt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What an explicit step of a stiff term must keep.

    quantity = rate · dt        stable while  stiffness · quantity ≤ the method's real axis
    """

    quantity: str
    """The quantity in words and symbols: ``r = α dt/dx²``."""
    rate: float
    """The quantity for dt = 1."""
    stiffness: float
    """The largest decay rate of the term for quantity = 1; 4 for the Laplacian on a line."""

    def bound(self, tableau: Tableau) -> float:
        """Give the largest stable value of the quantity under a method."""
        return tableau.real_axis / self.stiffness

    def breach(self, tableau: Tableau, dt: float, fraction: float = 1.0) -> str | None:
        """Say how a step of this size breaks the limit; None if it does not.

        Args:
            tableau: The method.
            dt: The step.
            fraction: The part of the step that the term takes in one turn of a splitting.
        """
        value, bound = self.rate * dt * fraction, self.bound(tableau)
        if value <= bound * (1 + 1e-9):
            return None
        largest = bound / (self.rate * fraction)
        return f"{self.quantity} = {value:g} is beyond {_spell(bound)}; use dt ≤ {largest:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term of a sum: a name, a rate of change, and what makes it cheaper or safer to step."""

    name: str
    """What messages call it."""
    rhs: Rhs
    """F(u, t)."""
    solve: Solve | None = None
    """Solver of the implicit step; without it Newton's method is used."""
    flow: Flow | None = None
    """Exact flow; splitting prefers it to a Runge–Kutta step."""
    limit: Limit | None = None
    """What an explicit step must keep."""


def diffusion_term(alpha: float, *, dx: float = 1.0, boundary: Boundary = Boundary.NO_FLUX) -> Term:
    """Make the diffusion term with all that it knows about itself.

        F(u) = α/dx² L u,    solve = (I − rL)⁻¹,    flow = exp(rL),    r = α dt/dx² ≤ ℓ/4

    ℓ is the method's stable interval on the real axis: r ≤ 1/2 for Euler.

    Args:
        alpha: Diffusivity α.
        dx: Distance between sites.
        boundary: What the ends see.
    """
    rate = alpha / dx**2
    return Term(
        name="diffusion",
        rhs=lambda u, t: rate * laplacian(u, boundary=boundary),
        solve=lambda v, scale, t: diffuse(
            v, rate * scale, scheme=Scheme.BACKWARD_EULER, boundary=boundary
        ),
        flow=lambda u, t, dt: diffuse(u, rate * dt, scheme=Scheme.EXACT, boundary=boundary),
        limit=Limit(quantity="r = α dt/dx²", rate=rate, stiffness=4.0),
    )


def add_terms(terms: tuple[Term, ...]) -> Term:
    """Add terms up into one.

        F = Σ F_k

    A lone term keeps its own solver and flow; a sum has neither.
    """
    if len(terms) == 1:
        return terms[0]

    def total(u: Field, t: float) -> Field:
        rate = terms[0].rhs(u, t)
        for term in terms[1:]:
            rate = rate + term.rhs(u, t)
        return rate

    return Term(name=" + ".join(term.name for term in terms), rhs=total)


def _spell(bound: float) -> str:
    simple = Fraction(bound).limit_denominator(8)
    return str(simple) if float(simple) == bound else f"{bound:.3g}"
