"""Integrators by name: how the terms of an equation are stepped, and to which order.

    euler             u + dt Σ F_k                          all terms at once
    lie               Φ_m … Φ_1 u, Euler turns              what a Transformer block does
    strang            ½ … 1 … ½, Heun turns                 symmetric, interaction in the middle
    heun, rk4         Runge–Kutta steps of the sum
    backward_euler    (I − dt D)⁻¹ (u + dt Σ F_k)           implicit in the diffusion alone

A turn of lie is one Euler step, of diffusion too; strang gives diffusion its exact flow, so that it
never meets the bound of an explicit step. Upwind (causal) diffusion and any under a projection have
none, and take Heun turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from depthpde.shapes import Field
from depthpde.solvers.splitting import Splitting, split_step
from depthpde.solvers.step import step
from depthpde.solvers.tableau import EULER, HEUN, RK4, Tableau
from depthpde.solvers.term import Term, add_terms


class Integrator(StrEnum):
    """How an equation is stepped in time."""

    EULER = "euler"
    """One explicit step of the sum of all terms."""
    LIE = "lie"
    """Each term in turn, one Euler step each: a Transformer block."""
    STRANG = "strang"
    """Half turns around a whole one, Heun steps: second order."""
    HEUN = "heun"
    """Second-order Runge–Kutta step of the sum."""
    RK4 = "rk4"
    """Fourth-order Runge–Kutta step of the sum."""
    BACKWARD_EULER = "backward_euler"
    """Euler step of all else, then an implicit step of the diffusion: stable for every α."""

    @property
    def order(self) -> int:
        """Give the order in dt."""
        return {Integrator.STRANG: 2, Integrator.HEUN: 2, Integrator.RK4: 4}.get(self, 1)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Terms in the order of their turns, and how they are stepped."""

    terms: tuple[Term, ...]
    tableau: Tableau
    splitting: Splitting | None
    project: Callable[[Field], Field] | None = None
    """Brings the field back to the surface it must stay on."""

    def step(self, u: Field, t: float, dt: float) -> Field:
        """Advance the field by one step."""
        if self.splitting is None:
            u = step(add_terms(self.terms), u, t, dt, self.tableau)
            return self.project(u) if self.project else u
        return split_step(
            self.terms,
            u,
            t,
            dt,
            tableau=self.tableau,
            splitting=self.splitting,
            project=self.project,
        )


def plan(
    integrator: Integrator,
    terms: tuple[Term, ...],
    project: Callable[[Field], Field] | None = None,
) -> StepPlan:
    """Arrange terms for an integrator.

    Args:
        integrator: How to step.
        terms: Diffusion first, then interaction, then reaction, then what else there is.
        project: Brings the field back to the surface it must stay on; None where there is none.
    """
    if integrator is Integrator.LIE:
        turns = tuple(replace(term, flow=None) for term in terms)
        return StepPlan(turns, EULER, Splitting.LIE, project)
    if integrator is Integrator.STRANG:
        # The last term is stepped once, the others twice: that one is the dearest, attention.
        last = sorted(terms, key=lambda term: term.name == "interaction")
        return StepPlan(tuple(last), HEUN, Splitting.STRANG, project)
    if integrator is Integrator.BACKWARD_EULER:
        return StepPlan(_implicit_last(terms), EULER, Splitting.LIE, project)
    tableau = {Integrator.EULER: EULER, Integrator.HEUN: HEUN, Integrator.RK4: RK4}[integrator]
    return StepPlan(terms, tableau, None, project)


def _implicit_last(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Turn semi-implicit Euler into a splitting: the explicit sum, then the implicit solve."""
    explicit = tuple(term for term in terms if term.name != "diffusion")
    implicit = tuple(_by_solve(term) for term in terms if term.name == "diffusion")
    return ((add_terms(explicit),) if explicit else ()) + implicit


def _by_solve(term: Term) -> Term:
    solve = term.solve
    assert solve is not None, "every form of diffusion can be solved for"
    return replace(term, flow=lambda u, t, dt: solve(u, dt, t + dt))
