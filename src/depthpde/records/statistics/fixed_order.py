"""Pre-named contrasts in a fixed order: each is a gate to the next, and none costs the others.

Holm's correction over everything that could be compared makes each claim pay for comparisons that
nobody asked for. An order that was named before the runs needs no correction: the first contrast is
tested at the whole level, the next only if the first was shown, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from depthpde.errors import check_range

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Gate:
    """One contrast of a fixed order."""

    p: float
    """Of this contrast alone."""
    adjusted: float
    """The largest p up to here: what the chance of any false finding is controlled by."""
    open: bool
    """Whether every contrast before it was shown, so that this one may be tested at all."""
    shown: bool
    """Whether it was reached and its p is small enough."""
    closed_by: str
    """The first contrast that was not shown, where the gate is closed; empty where it is open."""


def in_fixed_order(p_values: Mapping[str, float], *, level: float = LEVEL) -> dict[str, Gate]:
    """Test contrasts in the order given, until the first that is not shown.

        adjusted_k = max over j ≤ k of p_j,    shown_k iff adjusted_k ≤ level

    The chance of any false finding is at most the level, without assuming independence: a false
    finding needs the first true null of the order to be rejected.

        in_fixed_order({"first": 0.01, "second": 0.2, "third": 0.001})["third"].shown     # False

    Args:
        p_values: Contrast → p, in the order named before the runs.
        level: Of all together.
    """
    check_range("level", level, 1e-6, 0.5)
    found: dict[str, Gate] = {}
    worst, closed_by = 0.0, ""
    for name, value in p_values.items():
        p = check_range(name, float(value), 0.0, 1.0)
        worst = max(worst, p)
        found[name] = Gate(p, worst, not closed_by, worst <= level, closed_by)
        if worst > level and not closed_by:
            closed_by = name
    return found
