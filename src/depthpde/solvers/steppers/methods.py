"""Every method that chooses its own steps, by name; and which one `auto` takes.

bosh3  dopri5  tsit5             embedded pairs of the sum, explicit
adams                            variable order, the linear term exact, one evaluation a step
etd1  etd2  etd4  …              exponential Runge–Kutta, the linear term exact
ark3  ark4                       the linear term implicit, the rest explicit
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from depthpde.errors import check_name
from depthpde.shapes import Field
from depthpde.solvers.linear.generator import Generator, Nothing
from depthpde.solvers.pairs import PAIRS
from depthpde.solvers.steppers.adams import AdamsStepper
from depthpde.solvers.steppers.embedded import EmbeddedStepper
from depthpde.solvers.steppers.exponential import EXPONENTIAL, ExponentialStepper
from depthpde.solvers.steppers.imex import ADDITIVE, AdditiveStepper
from depthpde.solvers.steppers.stepper import Stepper, split_linear
from depthpde.solvers.term import Term, add_terms
from depthpde.solvers.tolerance import Tolerance

AUTO = "auto"
ADAMS = AdamsStepper.name
ORDERS: dict[str, int | None] = {
    **{name: each.order for name, each in PAIRS.items()},
    ADAMS: None,
    **{name: each.order for name, each in EXPONENTIAL.items()},
    **{name: each.order for name, each in ADDITIVE.items()},
}
"""Every method and its order; None for one that varies it."""
LONGEST_BASIS = 2048
"""Beyond this many sites a dense basis of modes costs more than the solves of `ark4`."""


def build_stepper(
    name: str,
    terms: tuple[Term, ...],
    u: Field,
    tolerance: Tolerance | None,
    project: Callable[[Field], Field] | None = None,
) -> Stepper:
    """Build a method for an equation.

    Args:
        name: One of `ORDERS`.
        terms: The terms of the equation.
        u: A field of the shape and kind to come.
        tolerance: What error is allowed; None takes every step as it is given.
        project: Brings the field back to the surface it must stay on.
    """
    check_name("method", name, ORDERS)
    if name in PAIRS:
        return EmbeddedStepper(add_terms(terms), PAIRS[name], tolerance, project)
    linear, rest = split_linear(terms)
    if name in ADDITIVE:
        if linear is None:
            raise ValueError(
                f"`method` must not be {name!r} for an equation without a linear term, got terms "
                f"{', '.join(term.name for term in terms)} (a projection leaves none linear); use "
                "'adams' or 'tsit5'"
            )
        return AdditiveStepper(linear, rest, ADDITIVE[name], tolerance, project)
    generator = generator_of(linear, u)
    if name == ADAMS:
        if tolerance is None:
            raise ValueError(
                "`substeps` must be left out for 'adams', which chooses its own steps; use rtol"
            )
        return AdamsStepper(generator, rest, tolerance, project)
    return ExponentialStepper(generator, rest, EXPONENTIAL[name], tolerance, project)


def generator_of(linear: Term | None, u: Field) -> Generator:
    """Give the linear term as a generator; nothing where there is none."""
    if linear is None or linear.generator is None:
        return Nothing()
    return linear.generator(u)


def choose_method(terms: tuple[Term, ...], u: Field, t: float) -> tuple[str, str]:
    """Choose a method by stiffness, and say why.

        stiffness = largest decay rate of the linear term / rate of change of the rest

    Diffusion with a basis of modes is integrated exactly at any stiffness, so `adams` takes it; a
    basis that would be too large is left to `ark4` where diffusion is stiff, to `tsit5` where not.

    Returns:
        The method, and a sentence about it.
    """
    linear, rest = split_linear(terms)
    if linear is None:
        return ADAMS, "adams: no linear term, so nothing is stiff that a method could know of"
    rate = linear.limit.rate * linear.limit.stiffness if linear.limit else 0.0
    if u.shape[1] <= LONGEST_BASIS:
        return ADAMS, f"adams: diffusion (decay rates up to {rate:.3g}) is integrated exactly"
    with torch.no_grad():
        nudge = 1e-3 * u.abs().mean() * torch.ones_like(u)
        push = rest.rhs(u + nudge, t) - rest.rhs(u, t)
        other = float(push.norm() / nudge.norm())
    against = f"decay rates up to {rate:.3g} against {other:.3g} of the rest, {u.shape[1]} sites"
    if rate > other:
        return "ark4", f"ark4: diffusion is stiff ({against})"
    return "tsit5", f"tsit5: diffusion is not stiff ({against})"
