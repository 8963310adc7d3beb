"""Follow the equation through time, and say why when it cannot be followed.

u_t = Σ_k F_k(u, t),    u(t_0) = u_0        →        u(t_0), u(t_1), …
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from depthpde.errors import check_one_of, check_positive
from depthpde.shapes import Field
from depthpde.solvers.splitting import Splitting, schedule, split_step
from depthpde.solvers.step import step
from depthpde.solvers.tableau import RK4, Tableau, find_tableau
from depthpde.solvers.term import Rhs, Term, add_terms

GROWTH = 1e8
"""A field this many times larger than it began has blown up."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Trajectory:
    """The field at the times that were asked for.

    >>> path = dp.simulate(dp.Equation(diffusion=0.1), torch.randn(1, 8, 4), [0.0, 1.0, 2.0])
    >>> torch.equal(path.at(2.0), path.final)
    True
    """

    times: Tensor
    """[times], increasing."""
    states: Tensor
    """[times, batch, length, dim]; the first is the start."""
    method: str
    """How it was computed."""
    terms: tuple[str, ...]
    """The names of what drove it."""

    def at(self, time: float) -> Field:
        """Return the field at one of the recorded times."""
        nearest = int((self.times - time).abs().argmin())
        if abs(float(self.times[nearest]) - time) > 1e-9 * (1 + abs(time)):
            raise ValueError(
                f"`time` must be one of the {len(self.times)} recorded times, got {time:g}; "
                f"the nearest is {float(self.times[nearest]):g}"
            )
        return self.states[nearest]

    @property
    def final(self) -> Field:
        """Return the field at the last time."""
        return self.states[-1]

    def __repr__(self) -> str:
        """Say what it is without its numbers."""
        span = f"{float(self.times[0]):g} … {float(self.times[-1]):g}"
        shape = list(self.states.shape[1:])
        return (
            f"Trajectory({' + '.join(self.terms)} by {self.method}, {len(self.times)} times "
            f"{span}, field {shape})"
        )


class BlowUpError(ValueError):
    """The field left every bound. Says when, through which term, and which limit was broken.

    >>> dp.integrate(lambda u, t: u**3, torch.full((1, 4, 2), 9.0), torch.linspace(0, 9, 10))
    Traceback (most recent call last):
    depthpde.solvers.integrate.BlowUpError: …
    """

    def __init__(self, message: str, *, time: float, term: str) -> None:
        super().__init__(message)
        self.time = time
        self.term = term


def integrate(
    dynamics: Rhs | Term | Sequence[Term],
    u0: Field,
    times: Tensor | Sequence[float],
    *,
    method: Tableau | str = RK4,
    splitting: Splitting | str | None = None,
    substeps: int = 1,
    project: Callable[[Field], Field] | None = None,
    ceiling: float | None = None,
) -> Trajectory:
    """Integrate an equation from its start through the times given.

        u(t + dt) ← one step of the method, or of the splitting, for each of the substeps

    Of the method's order in dt (of the lower of both under a splitting). A run that blows up
    raises `BlowUpError`, which says at which time, through which term, and which bound was broken.

    >>> path = dp.integrate(lambda u, t: -u, torch.ones(1, 4, 2), torch.linspace(0, 1, 11))
    >>> round(float(path.final[0, 0, 0]), 4)   # exp(−1)
    0.3679

    Args:
        dynamics: F(u, t), one term, or terms to be added up.
        u0: The field at the first time.
        times: Increasing times; the first is the start.
        method: A tableau or its name.
        splitting: Lie or Strang to give the terms turns; None to step their sum.
        substeps: Steps between one time and the next.
        project: Applied after every step, where the field must stay on a surface; a rate that is
            tangent to the surface keeps the method's order.
        ceiling: A field beyond this has blown up; 10⁸ times the start unless given.
    """
    terms = _as_terms(dynamics)
    clock = check_times(times)
    tableau = find_tableau(method)
    check_positive("substeps", substeps)
    split = None if splitting is None else check_one_of("splitting", splitting, Splitting)
    whole = add_terms(terms)
    ceiling = blow_up_ceiling(u0) if ceiling is None else ceiling
    u, states = u0, [u0]
    for start, end in itertools.pairwise(clock):
        dt = (end - start) / substeps
        for number in range(substeps):
            t = start + number * dt
            before = u
            if split is None:
                u = step(whole, u, t, dt, tableau)
                u = project(u) if project else u
            else:
                u = split_step(terms, u, t, dt, tableau=tableau, splitting=split, project=project)
            if not float(u.detach().abs().max()) <= ceiling:  # NaN compares false
                raise _explain(terms, before, t, dt, tableau, split)
        states.append(u)
    return Trajectory(
        times=torch.tensor(clock, dtype=torch.float64),
        states=torch.stack(states),
        method=tableau.name if split is None else f"{split.value}/{tableau.name}",
        terms=tuple(term.name for term in terms),
    )


def blow_up_ceiling(u0: Field) -> float:
    """Give the size beyond which a field that began like this has blown up.

    10⁸ (1 + max|u_0|)
    """
    return GROWTH * (1 + float(u0.detach().abs().max()))


def check_times(times: Tensor | Sequence[float]) -> list[float]:
    """Return at least two increasing times as numbers, or say what is wrong with them."""
    clock = [float(each) for each in times]
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
        return tuple(dynamics)
    return (Term(name="rhs", rhs=dynamics),)


def _explain(
    terms: tuple[Term, ...],
    u: Field,
    t: float,
    dt: float,
    tableau: Tableau,
    split: Splitting | None,
) -> BlowUpError:
    head = f"the run blew up at t = {t + dt:g} (dt = {dt:g}, {tableau.name})"
    turns = schedule(split, len(terms)) if split else tuple((i, 1.0) for i in range(len(terms)))
    for index, fraction in turns:
        term = terms[index]
        exact = split is not None and term.flow is not None
        breach = term.limit.breach(tableau, dt, fraction) if term.limit and not exact else None
        if breach:
            message = f"{head}: term '{term.name}': {breach}"
            return BlowUpError(message, time=t + dt, term=term.name)
    with torch.no_grad():
        pushes = [float(term.rhs(u, t).abs().max()) for term in terms]
    hardest = max(range(len(terms)), key=lambda index: pushes[index])
    name = terms[hardest].name
    message = (
        f"{head}: term '{name}' pushes hardest, max|F| = {pushes[hardest]:.2g} against "
        f"max|u| = {float(u.detach().abs().max()):.2g}; no declared bound was broken; "
        "use a smaller dt or a reaction that stays bounded"
    )
    return BlowUpError(message, time=t + dt, term=name)
