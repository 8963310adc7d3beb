"""One named term of the equation, with what it knows about itself.

    u_t = F_1(u, t) + F_2(u, t) + …

A term always gives its rate of change. It may also give its exact flow, its generator where it is
linear, a solver for its implicit step, and the limit that an explicit step must keep: what it gives
is used, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion.diffusion_2d import diffuse_2d
from depthpde.operators.diffusion.dispatch import diffuse, open_edge_mask
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.laplacian import laplacian, laplacian_2d
from depthpde.operators.stability import Scheme
from depthpde.shapes import Field, Mask
from depthpde.solvers.linear.generator import Generator, line_modes, plane_modes, upwind
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
    """One term of a sum: a name, a rate of change, and what makes it cheaper or safer to step.

    >>> growth = dp.Term(name="growth", rhs=lambda u, t: u)
    >>> path = dp.integrate([growth], torch.ones(1, 4, 2), [0.0, 1.0])
    """

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
    generator: Callable[[Field], Generator] | None = None
    """For a linear term: itself as an operator on fields like the one given."""


def diffusion_term(
    alpha: float | Tensor,
    *,
    dx: float = 1.0,
    boundary: Boundary = Boundary.NO_FLUX,
    valid_mask: Mask | None = None,
) -> Term:
    """Make the diffusion term with all that it knows about itself.

        F(u) = α/dx² L u,    solve = (I − rL)⁻¹,    flow = exp(rL),    r = α dt/dx² ≤ ℓ/4

    ℓ is the method's stable interval on the real axis: r ≤ 1/2 for Euler.

    Args:
        alpha: Diffusivity α; one number, or one for each feature.
        dx: Distance between sites.
        boundary: What the ends see.
        valid_mask: True = real token; padding is a no-flux wall.
    """
    rate = alpha / dx**2

    def rhs(u: Field, t: float) -> Field:
        edges = open_edge_mask(u, Problem(boundary=boundary), valid_mask=valid_mask)
        return rate * laplacian(u, boundary=boundary, edges=edges)

    def evolve(u: Field, ratio: float | Tensor, scheme: Scheme) -> Field:
        return diffuse(u, ratio, scheme=scheme, boundary=boundary, valid_mask=valid_mask)

    return Term(
        name="diffusion",
        rhs=rhs,
        solve=lambda v, scale, t: evolve(v, rate * scale, Scheme.BACKWARD_EULER),
        flow=lambda u, t, dt: evolve(u, rate * dt, Scheme.EXACT),
        limit=Limit(quantity="r = α dt/dx²", rate=_largest(rate), stiffness=4.0),
        generator=lambda u: line_modes(
            u,
            rate,
            boundary=boundary,
            edges=open_edge_mask(u, Problem(boundary=boundary), valid_mask=valid_mask),
        ),
    )


def plane_term(
    alpha: float | Tensor,
    grid: tuple[int, int],
    *,
    dx: float = 1.0,
    boundary: Boundary = Boundary.NO_FLUX,
) -> Term:
    """Make the diffusion term of an image laid out row by row.

        F(u) = α/dx² (L_height + L_width) u,    flow = exp(rL),    r = α dt/dx² ≤ ℓ/8

    Args:
        alpha: Diffusivity α; one number, or one for each feature.
        grid: Height and width.
        dx: Distance between pixels.
        boundary: What all four sides see.
    """
    rate = alpha / dx**2

    def solve(v: Field, scale: float, t: float) -> Field:
        modes = plane_modes(v, rate, grid, boundary=boundary)
        return modes.leave(modes.enter(v) / (1 - scale * modes.spectrum))

    return Term(
        name="diffusion",
        rhs=lambda u, t: rate * laplacian_2d(u, grid, boundary=boundary),
        solve=solve,
        flow=lambda u, t, dt: diffuse_2d(
            u, rate * dt, grid, scheme=Scheme.EXACT, boundary=boundary
        ),
        limit=Limit(quantity="r = α dt/dx²", rate=_largest(rate), stiffness=8.0),
        generator=lambda u: plane_modes(u, rate, grid, boundary=boundary),
    )


def transport_term(rate: float | Tensor, *, valid_mask: Mask | None = None) -> Term:
    """Make the causal form of diffusion: what a site takes from the one before it.

        F(u)_i = c (u_{i−1} − u_i),  the first site kept,    solve = (I + r(I − S))⁻¹,    r = c dt

    A site never sees its future. An explicit Euler step is the upwind scheme: it keeps the range
    while r ≤ 1. The real part of every eigenvalue is −c, so stiffness is 2 for the same bound.

    Args:
        rate: c; one number, or one for each feature.
        valid_mask: True = real token; padding gives nothing and takes nothing.
    """

    def rhs(u: Field, t: float) -> Field:
        flux = u[:, :-1] - u[:, 1:]
        if valid_mask is not None:
            flux = flux * (valid_mask[:, :-1] & valid_mask[:, 1:])[..., None]
        return F.pad(rate * flux, (0, 0, 1, 0))

    def solve(v: Field, scale: float, t: float) -> Field:
        ratio = torch.as_tensor(rate * scale, dtype=v.dtype, device=v.device)
        taken = torch.ones_like(v[..., :1]) * ratio
        if valid_mask is not None:
            taken = taken * valid_mask[..., None] * F.pad(valid_mask, (1, -1))[..., None]
        y = [v[:, 0]]
        for site in range(1, v.shape[1]):
            r = taken[:, site]
            y.append((v[:, site] + r * y[-1]) / (1 + r))
        return torch.stack(y, dim=1)

    return Term(
        name="diffusion",
        rhs=rhs,
        solve=solve,
        limit=Limit(quantity="r = c dt", rate=_largest(rate), stiffness=2.0),
        generator=lambda u: upwind(u, rate, valid_mask),
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


def _largest(rate: float | Tensor) -> float:
    return float(rate.detach().max()) if isinstance(rate, Tensor) else float(rate)


def _spell(bound: float) -> str:
    simple = Fraction(bound).limit_denominator(8)
    return str(simple) if float(simple) == bound else f"{bound:.3g}"
