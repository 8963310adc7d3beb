"""One difference out of several tasks: every task counts alike, every pair of runs is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from depthpde.records.statistics.combination import (
    combined_interval,
    combined_mean,
    directed_tests,
)
from depthpde.records.statistics.interval import Interval
from depthpde.records.statistics.paired import holm, too_few

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
    """For that mean; None below six pairs on a task, and where the mean counts escapes."""
    p: float
    """Two-sided p of the studentised combination, of this comparison alone."""
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
        interval   `combined_interval`;    p   `directed_test`, Holm over the variants

    Tasks count alike however many seeds each has. Holm's correction is for a grid whose variants
    are all asked about: of m variants the best must reach p ≤ 0.05 / m. Claims that were named
    one by one are judged by `verdicts` instead.

    Args:
        baseline: Task → seed → accuracy.
        variants: Name → task → seed → accuracy; each must share a pair with the baseline on
            every task that it names.
        level: Of the intervals.
        seed: Seed of the random flips beyond 40 pairs.
    """
    differences = {name: shared_pairs(name, runs, baseline) for name, runs in variants.items()}
    p_values = directed_tests(list(differences.values()), seed=seed)
    return {
        name: _overall(pairs, level, p, corrected, len(variants))
        for (name, pairs), p, corrected in zip(
            differences.items(), p_values, holm(p_values), strict=True
        )
    }


def paired(variant: Mapping[int, float], baseline: Mapping[int, float]) -> dict[int, float]:
    """Return variant − baseline for each seed that both have, in the order of seeds."""
    return {s: variant[s] - baseline[s] for s in sorted(set(variant) & set(baseline))}


def shared_pairs(name: str, runs: Runs, baseline: Runs) -> dict[str, list[float]]:
    """Return task → differences from the baseline, in the order of seeds.

    Args:
        name: Of the variant, for who reads what is wrong.
        runs: The variant's; it must share a seed with the baseline on every task that it names.
        baseline: The baseline's.
    """
    pairs = {task: paired(each, baseline.get(task, {})) for task, each in runs.items()}
    lonely = [task for task, each in pairs.items() if not each]
    if lonely or not pairs:
        raise ValueError(
            f"`variants` must share a seed with the baseline on every task, got none for {name!r} "
            f"on {', '.join(lonely) or 'any task'}; run both with the same seeds, or leave it out"
        )
    return {task: list(each.values()) for task, each in pairs.items()}


def _overall(
    differences: Mapping[str, list[float]], level: float, p: float, corrected: float, among: int
) -> Overall:
    n = sum(map(len, differences.values()))
    return Overall(
        n=n,
        tasks=len(differences),
        mean=combined_mean(differences),
        interval=combined_interval(differences, level=level),
        p=p,
        p_holm=corrected,
        warning=too_few(n, comparisons=among),
    )
