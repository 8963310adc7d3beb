"""Why a run could not go on: when, through which term, beyond which bound."""

from __future__ import annotations

import math

import torch

from depthpde.shapes import Field
from depthpde.solvers.splitting import Splitting, schedule
from depthpde.solvers.tableau import Tableau
from depthpde.solvers.term import Term

GROWTH = 1e8
"""A field this many times larger than it began has blown up."""


class BlowUpError(ValueError):
    """The field left every bound. Says when, through which term, and which limit was broken.

    >>> dp.integrate(lambda u, t: u * u, torch.ones(1, 4, 2), (0.0, 9.0), method="tsit5")
    Traceback (most recent call last):
    depthpde.solvers.blow_up.BlowUpError: the field left every bound
    """

    def __init__(self, message: str, *, time: float, term: str) -> None:
        super().__init__(message)
        self.time = time
        self.term = term


def blow_up_ceiling(u0: Field) -> float:
    """Give the size beyond which a field that began like this has blown up.

    10⁸ (1 + max|u_0|)
    """
    return GROWTH * (1 + float(u0.detach().abs().max()))


def explain(
    terms: tuple[Term, ...],
    u: Field,
    t: float,
    dt: float,
    *,
    method: str,
    tableau: Tableau | None = None,
    split: Splitting | None = None,
) -> BlowUpError:
    """Find out which term drove the field out of bounds.

    A term whose declared limit the step broke is named first; else the one that pushes hardest.

    Args:
        terms: What drove the field.
        u: The last field that was in bounds.
        t: Its time.
        dt: The step that left them.
        method: What stepped it.
        tableau: The method of fixed steps, which have limits; None where the step was chosen.
        split: How the terms took turns.
    """
    head = f"the run blew up at t = {t + dt:g} (dt = {dt:g}, {method})"
    turns = schedule(split, len(terms)) if split else tuple((i, 1.0) for i in range(len(terms)))
    for index, fraction in turns if tableau else ():
        term = terms[index]
        exact = split is not None and term.flow is not None
        assert tableau is not None, "there are turns only where there is one"
        breach = term.limit.breach(tableau, dt, fraction) if term.limit and not exact else None
        if breach:
            message = f"{head}: term '{term.name}': {breach}"
            return BlowUpError(message, time=t + dt, term=term.name)
    with torch.no_grad():
        pushes = [float(term.rhs(u, t).abs().max()) for term in terms]
    pushes = [math.inf if math.isnan(push) else push for push in pushes]
    hardest = max(range(len(terms)), key=lambda index: pushes[index])
    name = terms[hardest].name
    smaller = "a smaller dt or " if tableau else ""
    message = (
        f"{head}: term '{name}' pushes hardest, max|F| = {pushes[hardest]:.2g} against "
        f"max|u| = {float(u.detach().abs().max()):.2g}; no declared bound was broken; "
        f"use {smaller}a reaction that stays bounded"
    )
    return BlowUpError(message, time=t + dt, term=name)
