"""One difference out of several tasks: each studentised by itself, then combined.

    mean      Δ = 1/T Σ_t mean_s d_ts                               every task counts alike
    interval  Δ ± t_ν e,   e² = 1/T² Σ_t s_t² / n_t                 ν by Welch and Satterthwaite
    p         flips of Σ_t z_t,   z_t = Σ_s d_ts / √(Σ_s d_ts²)     exact to 40 pairs

Divided by its root sum of squares, which no flip changes, a task adds the same spread to the test
as every other: one task of large differences cannot decide it. It can still decide the mean, whose
unit is points, so tasks that are learned at once or not yet do not belong here: see `survival`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from depthpde.errors import check_range
from depthpde.records.statistics.interval import Interval, IntervalMethod
from depthpde.records.statistics.samples import Differences, Numbers, check_strata
from depthpde.records.statistics.sign_flip import (
    ENUMERATED_UP_TO,
    Alternative,
    sign_flip_interval,
    sign_flip_test,
    sign_flip_tests,
)

LEAST_PAIRS = 6
"""Pairs on every task below which no interval keeps its coverage; see docs/report.md."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean over tasks, its standard error and the degrees of freedom of that error."""

    mean: float
    error: float
    freedom: float
    """Infinite where all differences of every task are equal."""


def combined_mean(differences: Differences) -> float:
    """Return the mean over tasks of a task's mean difference.

    Δ = 1/T Σ_t mean_s d_ts
    """
    return float(np.mean([each.mean() for each in check_strata(differences)]))


def combined_spread(differences: Differences) -> Spread:
    """Return the mean over tasks with its error, tasks taken as fixed and pairs as drawn.

        e² = Σ_t e_t²,   e_t² = s_t² / (n_t T²),   ν = e⁴ / Σ_t e_t⁴ / (n_t − 1)

    Args:
        differences: Task → at least two paired differences.
    """
    strata = check_strata(differences, at_least=2)
    variances = [each.var(ddof=1) if np.ptp(each) else 0.0 for each in strata]  # not 1e-34
    sizes = np.array([len(each) for each in strata])
    parts = np.array(variances) / sizes / len(strata) ** 2
    variance = float(parts.sum())
    degrees = variance**2 / float((parts**2 / (sizes - 1)).sum()) if variance else np.inf
    return Spread(float(np.mean([each.mean() for each in strata])), variance**0.5, float(degrees))


def combined_interval(differences: Differences, *, level: float = 0.95) -> Interval | None:
    """Return the interval of the mean over tasks; None where none would be honest.

        one task        the sign-flip test, inverted (Student's t beyond 20 pairs)
        several tasks   Δ ± t_ν e

    None below six pairs on any task: measured coverage falls to 92 % there, and a spread of three
    numbers is hardly known. Measured by ``benchmarks/inference.py``.

        combined_interval({"listops": [1.4, 1.9, 1.1, 2.0, 1.7, 1.5]})     # [1.1, 2.0]: all six

    Args:
        differences: Task → paired differences.
        level: Nominal coverage.
    """
    check_range("level", level, 0.5, 0.9999)
    strata = check_strata(differences)
    if min(len(each) for each in strata) < LEAST_PAIRS:
        return None
    if len(strata) == 1 and len(strata[0]) <= ENUMERATED_UP_TO:
        return sign_flip_interval(strata[0], level=level)
    return _welch(differences, level)


def combined_test(
    differences: Differences, *, side: Alternative | str = Alternative.BOTH, seed: int = 0
) -> float:
    """Return the p of the studentised combination: does the variant change anything, one way?

        S = Σ_t z_t,   z_t = Σ_s d_ts / √(Σ_s d_ts²),   p by flipping the sign of every d_ts

    Runs of one seed on different tasks are taken as independent: they share neither data nor what
    is learned from them. A task whose differences are all 0 adds nothing.

    Args:
        differences: Task → paired differences.
        side: Which departures count.
        seed: Seed of the random patterns beyond 40 pairs in all.
    """
    return sign_flip_test(_studentised(check_strata(differences)), side=side, seed=seed)


def directed_test(differences: Differences, *, seed: int = 0) -> float:
    """Return the two-sided p of the side that the mean over tasks is on.

        p = min(1, 2 · one-sided p of S on the side of Δ)

    One task can pull the mean to its side against all others. The studentised sum then lies on the
    other side, and p is near 1 rather than small for the wrong reason. Equal to `combined_test`
    where both are on one side, so always for one task; valid as that is.

    Args:
        differences: Task → paired differences.
        seed: Seed of the random patterns beyond 40 pairs in all.
    """
    return directed_tests([differences], seed=seed)[0]


def directed_tests(several: Sequence[Differences], *, seed: int = 0) -> list[float]:
    """Return `directed_test` of each of several comparisons; see `sign_flip_tests`."""
    sides = [
        Alternative.ABOVE if combined_mean(each) > 0 else Alternative.BELOW for each in several
    ]
    samples = [_studentised(check_strata(each)) for each in several]
    return [min(1.0, 2 * p) for p in sign_flip_tests(samples, sides, seed=seed)]


def _studentised(strata: list[Numbers]) -> Numbers:
    sizes = [float(np.sqrt((each**2).sum())) for each in strata]
    return np.concatenate([each / (size or 1.0) for each, size in zip(strata, sizes, strict=True)])


def _welch(differences: Differences, level: float) -> Interval:
    from scipy.special import stdtrit

    found = combined_spread(differences)
    half = float(stdtrit(found.freedom, (1 + level) / 2) * found.error) if found.error else 0.0
    equal = "all differences of a task are equal: the width says nothing about new runs"
    return Interval(
        low=found.mean - half,
        high=found.mean + half,
        level=level,
        method=IntervalMethod.WELCH if len(differences) > 1 else IntervalMethod.STUDENT,
        note="" if found.error else equal,
    )
