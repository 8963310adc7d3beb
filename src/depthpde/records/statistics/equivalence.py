"""Equivalence: two one-sided tests with a margin that is named before.

That a difference is not shown does not mean that there is none: *the same* is a claim of its own,
and needs a margin below which a difference does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from depthpde.records.statistics.combination import combined_interval, combined_spread
from depthpde.records.statistics.interval import Interval
from depthpde.records.statistics.samples import Differences, check_strata
from depthpde.records.statistics.sign_flip import ENUMERATED_UP_TO, Alternative, sign_flip_test

LEVEL = 0.05
"""Of each of the two one-sided tests."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """Whether a mean difference lies within a margin."""

    margin: float
    """Half the width of what counts as the same."""
    interval: Interval
    """At 90 %: the two one-sided tests reject exactly if it lies within the margin."""
    p: float
    """The larger p of the two tests."""

    @property
    def shown(self) -> bool:
        """Whether both tests reject a difference beyond the margin."""
        return self.p <= LEVEL


def equivalence(differences: Differences, margin: float) -> Equivalence | None:
    """Test that a mean difference over tasks lies within ±margin; None below six pairs a task.

        H₀: |Δ| ≥ margin,    p = max(p of Δ ≤ −margin, p of Δ ≥ +margin)

    One task: sign flips of d + margin and of d − margin. Several: Student's t of Δ ± margin with
    Welch's degrees of freedom. The chance of calling a difference of the margin's size equivalent
    is at most 5 %.

        equivalence({"text": [0.1, -0.2, 0.0, 0.1, 0.2, -0.1]}, margin=0.5).shown        # True

    Args:
        differences: Task → paired differences.
        margin: In the unit of the differences; choose it before looking at them.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"`margin` must be a number above 0, got {margin!r}; name what matters")
    strata = check_strata(differences)
    interval = combined_interval(differences, level=1 - 2 * LEVEL)
    if interval is None:
        return None
    if len(strata) == 1 and len(strata[0]) <= ENUMERATED_UP_TO:
        p = max(
            sign_flip_test(strata[0] + margin, side=Alternative.ABOVE),
            sign_flip_test(strata[0] - margin, side=Alternative.BELOW),
        )
    else:
        p = _student_p(differences, margin)
    return Equivalence(margin=margin, interval=interval, p=p)


def _student_p(differences: Differences, margin: float) -> float:
    from scipy.special import stdtr

    found = combined_spread(differences)
    inside = margin - abs(found.mean)
    if not found.error:
        return 0.0 if inside > 0 else 1.0
    return float(stdtr(min(found.freedom, np.finfo(float).max), -inside / found.error))
