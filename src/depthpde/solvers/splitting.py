"""Split a sum of terms into turns: what a Transformer block does.

    Lie      e^{dt(A+B)} ≈ e^{dt B} e^{dt A}                     first order
    Strang   e^{dt(A+B)} ≈ e^{½dt A} e^{dt B} e^{½dt A}          second order

Attention, then feed-forward, each added to the stream, is Lie splitting with one Euler step a
term. The error of a splitting is made of commutators, so terms that commute split exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from depthpde.shapes import Field
from depthpde.solvers.step import step
from depthpde.solvers.tableau import Tableau
from depthpde.solvers.term import Term


class Splitting(StrEnum):
    """The order in which terms take their turns."""

    LIE = "lie"
    """Each term once, in the order given."""
    STRANG = "strang"
    """Half a step of each up to the last, the last whole, then the halves in reverse."""

    @property
    def order(self) -> int:
        """Give the order of the splitting, if each turn is at least as accurate."""
        return 1 if self is Splitting.LIE else 2


def schedule(splitting: Splitting, num_terms: int) -> tuple[tuple[int, float], ...]:
    """List the turns of one step: which term, and for which fraction of dt.

        Lie: (0, 1) (1, 1) …        Strang: (0, ½) … (m−1, 1) … (0, ½)

    Every term's fractions add up to 1; Strang reads the same backwards.
    """
    last = num_terms - 1
    if splitting is Splitting.LIE:
        return tuple((term, 1.0) for term in range(num_terms))
    halves = tuple((term, 0.5) for term in range(last))
    return (*halves, (last, 1.0), *reversed(halves))


def split_step(
    terms: Sequence[Term],
    u: Field,
    t: float,
    dt: float,
    *,
    tableau: Tableau,
    splitting: Splitting,
    project: Callable[[Field], Field] | None = None,
) -> Field:
    """Advance the field by one step, the terms taking turns.

        u ← Φ_m(f_m dt) ∘ … ∘ Φ_1(f_1 dt) u

    Φ_k is the term's exact flow where it has one, else one Runge–Kutta step. Of order
    min(splitting, tableau).

    Args:
        terms: The terms, in the order of their turns.
        u: The field at time t.
        t: The time.
        dt: The step.
        tableau: Method of a turn without an exact flow.
        splitting: Lie or Strang.
        project: Applied after every turn, where the field must stay on a surface.
    """
    elapsed = [0.0] * len(terms)
    for index, fraction in schedule(splitting, len(terms)):
        term, start, turn = terms[index], t + elapsed[index] * dt, fraction * dt
        u = term.flow(u, start, turn) if term.flow else step(term, u, start, turn, tableau)
        u = project(u) if project else u
        elapsed[index] += fraction
    return u
