"""Follow the equation through time, and say why when it cannot be followed.

u_t = Σ_k F_k(u, t),    u(t_0) = u_0        →        u(t_0), u(t_1), …
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence

from torch import Tensor

from depthpde.errors import (
    check_field,
    check_name,
    check_one_of,
    check_positive,
    check_range,
    check_tensor,
    shown,
)
from depthpde.shapes import Field
from depthpde.solvers.blow_up import BlowUpError, blow_up_ceiling, explain
from depthpde.solvers.follow import Integration, Watching
from depthpde.solvers.splitting import Splitting
from depthpde.solvers.steppers.fixed import FixedStepper
from depthpde.solvers.steppers.methods import AUTO, ORDERS, build_stepper, choose_method
from depthpde.solvers.tableau import RK4, TABLEAUS, Tableau, find_tableau
from depthpde.solvers.term import Rhs, Term
from depthpde.solvers.tolerance import Tolerance
from depthpde.solvers.trajectory import Statistics, Trajectory

__all__ = ["BlowUpError", "Trajectory", "blow_up_ceiling", "check_times", "integrate"]


def integrate(
    dynamics: Rhs | Term | Sequence[Term],
    u0: Field,
    times: Tensor | Sequence[float],
    *,
    method: Tableau | str = RK4,
    splitting: Splitting | str | None = None,
    substeps: int = 1,
    tolerance: Tolerance | None = None,
    project: Callable[[Field], Field] | None = None,
    ceiling: float | None = None,
    watching: Watching | None = None,
) -> Trajectory:
    """Integrate an equation from its start through the times given.

        u(t + dt) ← one step of the method, or of the splitting, for each of the substeps

    Of the method's order in dt (of the lower of both under a splitting); a method that knows the
    error of its step chooses dt by itself. A run that blows up raises `BlowUpError`, which says at
    which time, through which term, and which bound was broken.

    >>> path = dp.integrate(lambda u, t: -u, torch.ones(1, 4, 2), torch.linspace(0, 1, 11))
    >>> round(float(path.final[0, 0, 0]), 4)   # exp(−1)
    0.3679

    Args:
        dynamics: F(u, t), one term, or terms to be added up.
        u0: The field at the first time.
        times: Increasing times; the first is the start.
        method: A tableau or its name, for fixed steps; or one of `ORDERS`, or "auto", whose steps
            follow the tolerance.
        splitting: Lie or Strang to give the terms turns; None to step their sum.
        substeps: Steps between one time and the next, where they are fixed.
        tolerance: The error that a chosen step may make; 1e-6 of the field unless given.
        project: Applied after every step, where the field must stay on a surface; a rate that is
            tangent to the surface keeps the method's order.
        ceiling: A field beyond this has blown up; 10⁸ times the start unless given.
        watching: Events, limits, and what to keep; nothing in between unless given.
    """
    terms = _as_terms(dynamics)
    check_field("u0", u0)
    if ceiling is not None:
        check_range("ceiling", ceiling, 1e-300, sys.float_info.max)
    clock = check_times(times)
    check_positive("substeps", substeps)
    split = None if splitting is None else check_one_of("splitting", splitting, Splitting)
    chosen = isinstance(method, str) and method not in TABLEAUS
    watching = watching or Watching(dense=chosen)
    statistics = Statistics()
    counted = tuple(statistics.count(term) for term in terms)
    run = Integration.begin(u0, clock, watching, statistics=statistics, ceiling=ceiling)
    names = tuple(term.name for term in terms)
    if not chosen:
        tableau = find_tableau(method)
        fixed = FixedStepper(counted, tableau, split, project)

        def blame(u: Field, t: float, dt: float) -> BlowUpError:
            return explain(terms, u, t, dt, method=tableau.name, tableau=tableau, split=split)

        u = u0
        for start, end in itertools.pairwise(clock):
            u = run.cover(fixed, u, start, end, blame, steps=substeps)
        return run.path(fixed.name, names)
    name, why = check_name("method", str(method), (*TABLEAUS, *ORDERS, AUTO)), ""
    if name == AUTO:
        name, why = choose_method(terms, u0, clock[0])
    allowed = tolerance or Tolerance()
    allowed.check(u0)
    stepper = build_stepper(name, counted, u0, allowed, project)

    def blame_chosen(u: Field, t: float, dt: float) -> BlowUpError:
        return explain(terms, u, t, dt, method=name)

    run.cover(stepper, u0, clock[0], clock[-1], blame_chosen)
    return run.path(name, names, why)


def check_times(times: Tensor | Sequence[float]) -> list[float]:
    """Return at least two increasing times as numbers, or say what is wrong with them."""
    if isinstance(times, Tensor):
        check_tensor("times", times)
    try:
        clock = [float(each) for each in times]
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"`times` must be at least two increasing times, got {shown(times)}; "
            "use torch.linspace(start, end, n)"
        ) from error
    if any(map(math.isinf, clock)):
        raise ValueError(f"`times` must be finite, got {clock[:4]}; end where you want to look")
    if len(clock) < 2 or any(not b > a for a, b in itertools.pairwise(clock)):
        raise ValueError(
            f"`times` must be at least two increasing times, got {clock[:4]}; "
            "use torch.linspace(start, end, n)"
        )
    return clock


def _as_terms(dynamics: Rhs | Term | Sequence[Term]) -> tuple[Term, ...]:
    if isinstance(dynamics, Term):
        return (dynamics,)
    if isinstance(dynamics, Sequence):
        if not dynamics:
            raise ValueError("`dynamics` must have at least one term, got none; pass Term(…)")
        for each in dynamics:
            if not isinstance(each, Term):
                raise ValueError(f"`dynamics` must hold terms, got {shown(each)}; pass Term(…)")
        return tuple(dynamics)
    if not callable(dynamics):
        raise ValueError(
            f"`dynamics` must be a function F(u, t), a Term or several, got {shown(dynamics)}"
        )
    return (Term(name="rhs", rhs=dynamics),)
