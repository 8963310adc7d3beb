"""One difference out of several tasks: every task counts alike, every pair of runs is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from depthpde.records.statistics.interval import Interval, IntervalMethod
from depthpde.records.statistics.paired import (
    Numbers,
    holm,
    sign_flip_p,
    too_few,
)

Runs = Mapping[str, Mapping[int, float]]
"""Task → seed → accuracy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overall:
    """A variant against the baseline over several tasks."""

    n: int
    """Pairs of runs, over all tasks."""
    tasks: int
    mean: float
    """Mean over tasks of the mean difference of a task."""
    interval: Interval | None
    """For that mean; None where a task has one pair only, so that its spread is not known."""
    p: float
    """Two-sided sign-flip p over all pairs, of this comparison alone."""
    p_holm: float
    """The same after Holm's correction over all variants compared; p where there is one."""
    warning: str | None
    """Said when n is too small to reach significance, whatever the numbers."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero; p may say otherwise where spreads differ much."""
        return self.interval is not None and (self.interval.low > 0 or self.interval.high < 0)


def compare_over_tasks(
    baseline: Runs, variants: Mapping[str, Runs], *, level: float = 0.95, seed: int = 0
) -> dict[str, Overall]:
    """Compare variants with one baseline over the tasks that both have.

        Δ = 1/T Σ_t mean_s d_ts,    d_ts = variant_ts − baseline_ts
        interval   Δ ± t_ν e,    e² = 1/T² Σ_t s_t² / n_t,    ν by Welch and Satterthwaite
        p          by flipping the sign of each d_ts by itself;    Holm over the variants

    Tasks count alike however many seeds each has. A flip for each task and seed asks whether
    the variant changes anything on any of these tasks, and takes runs of one seed on different
    tasks as independent: they share a seed, but neither data nor what is learned from them.
    Six seeds on five tasks are thirty pairs, enough to correct for many variants, where the six
    averages over tasks alone could never reach 5 % as the best of two.

    Args:
        baseline: Task → seed → accuracy.
        variants: Name → task → seed → accuracy; each must share a pair with the baseline on
            every task that it names.
        level: Of the intervals.
        seed: Seed of the random flips beyond 20 pairs.
    """
    found = {name: _compare(name, runs, baseline, level, seed) for name, runs in variants.items()}
    corrected = holm([each.p for each in found.values()])
    return {
        name: replace(each, p_holm=p, warning=too_few(each.n, comparisons=len(found)))
        for (name, each), p in zip(found.items(), corrected, strict=True)
    }


def paired(variant: Mapping[int, float], baseline: Mapping[int, float]) -> dict[int, float]:
    """Return variant − baseline for each seed that both have, in the order of seeds."""
    return {s: variant[s] - baseline[s] for s in sorted(set(variant) & set(baseline))}


def _compare(name: str, runs: Runs, baseline: Runs, level: float, seed: int) -> Overall:
    pairs = {task: paired(each, baseline.get(task, {})) for task, each in runs.items()}
    lonely = [task for task, each in pairs.items() if not each]
    if lonely or not pairs:
        raise ValueError(
            f"`variants` must share a seed with the baseline on every task, got none for {name!r} "
            f"on {', '.join(lonely) or 'any task'}; run both with the same seeds, or leave it out"
        )
    strata = [np.array(list(each.values())) for each in pairs.values()]
    weighted = np.concatenate([each / (len(each) * len(strata)) for each in strata])
    mean = float(weighted.sum())
    p = sign_flip_p(weighted, seed=seed)
    return Overall(
        n=len(weighted),
        tasks=len(strata),
        mean=mean,
        interval=_interval(mean, strata, level),
        p=p,
        p_holm=p,
        warning=None,
    )


def _interval(mean: float, strata: list[Numbers], level: float) -> Interval | None:
    from scipy.special import stdtrit

    if min(len(each) for each in strata) < 2:
        return None
    method = IntervalMethod.STUDENT
    parts = np.array([each.var(ddof=1) / len(each) for each in strata]) / len(strata) ** 2
    freedom = np.array([len(each) - 1 for each in strata])
    variance, note, half = float(parts.sum()), "", 0.0
    if variance:
        degrees = variance**2 / float((parts**2 / freedom).sum())
        half = float(stdtrit(degrees, (1 + level) / 2) * variance**0.5)
    else:
        note = "all differences of a task are equal: the width says nothing about new runs"
    return Interval(low=mean - half, high=mean + half, level=level, method=method, note=note)
