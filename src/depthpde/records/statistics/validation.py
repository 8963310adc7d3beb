"""Validation by simulation: how often intervals hold the truth and tests find what is not there.

Every number is measured on the functions that reports call, with samples shaped like ours: small,
skewed, tied, of unequal spread from task to task, or on a plateau and off it. A method is printed
in a report only where it survives this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from depthpde.errors import check_name, check_positive
from depthpde.records.statistics.combination import (
    combined_interval,
    combined_spread,
    directed_test,
)
from depthpde.records.statistics.equivalence import equivalence
from depthpde.records.statistics.power import one_task_effect, several_tasks_effect
from depthpde.records.statistics.samples import Numbers
from depthpde.records.statistics.survival import EscapeTime, log_rank_test
from depthpde.seeds import derive

LEVEL = 0.05
TIE = 0.1
"""Step of the tied shape, in spreads: twice as coarse as accuracies of 4,000 examples."""
STUCK = 0.3
"""Share of the plateau shape's runs that stay on it."""

Shape = Callable[[np.random.Generator, tuple[int, ...]], Numbers]
"""Draws numbers of mean 0 and spread 1."""


def _normal(random: np.random.Generator, size: tuple[int, ...]) -> Numbers:
    return random.standard_normal(size)


def _skewed(random: np.random.Generator, size: tuple[int, ...]) -> Numbers:
    return (random.gamma(4.0, 1.0, size) - 4) / 2  # skewness 1: as much as our most skewed task


def _tied(random: np.random.Generator, size: tuple[int, ...]) -> Numbers:
    ties: Numbers = np.round(random.standard_normal(size) / TIE) * TIE
    return ties


def _plateau(random: np.random.Generator, size: tuple[int, ...]) -> Numbers:
    """Draw a run on a plateau, exactly 0 before it is centred, or off it, near 1."""
    off = random.random(size) >= STUCK
    runs = np.where(off, 1 + 0.1 * random.standard_normal(size), 0.0)
    mean, square = 1 - STUCK, (1 - STUCK) * 1.01
    plateau: Numbers = (runs - mean) / (square - mean**2) ** 0.5
    return plateau


SHAPES: Mapping[str, Shape] = {
    "normal": _normal,
    "skewed": _skewed,
    "tied": _tied,
    "plateau": _plateau,
}
"""By name; ``plateau`` is for runs that are learned at once or not yet."""

SPREADS: Mapping[str, tuple[float, ...]] = {
    "one task": (1.0,),
    "four tasks": (1.0, 1.0, 1.0, 1.0),
    "four, ours": (0.5, 0.75, 0.75, 1.85),
    "four, one of 8×": (1.0, 1.0, 1.0, 8.0),
}
"""Spread of the paired differences of each task; *ours*: the medians of the committed records."""


def coverage(
    shape: Shape,
    spreads: Sequence[float],
    n: int,
    *,
    draws: int,
    level: float = 0.95,
    seed: int = 0,
) -> float | None:
    """Return the share of intervals that hold the true mean 0; None where none is printed.

        share of samples with 0 in combined_interval(sample)

    Args:
        shape: Of the paired differences.
        spreads: One for each task.
        n: Pairs on each task.
        draws: Samples.
        level: Of the intervals.
        seed: Seed of the samples.
    """
    intervals = [
        combined_interval(each, level=level) for each in _samples(shape, spreads, n, draws, seed)
    ]
    held = [0.0 in each for each in intervals if each is not None]
    return float(np.mean(held)) if held else None


def false_findings(
    shape: Shape, spreads: Sequence[float], n: int, *, draws: int, seed: int = 0
) -> float:
    """Return how often a side of 0 is shown where variant and baseline are the same.

        d = x − y,    x and y two runs of one shape;    shown: interval beyond 0 and p ≤ 5 %

    Where no interval is printed nothing is shown, and p alone is counted, which a reader may see.

    Args:
        shape: Of the runs.
        spreads: One for each task.
        n: Pairs on each task.
        draws: Samples.
        seed: Seed of the samples.
    """
    wrong = 0
    for sample in _samples(_exchangeable(shape), spreads, n, draws, seed):
        interval = combined_interval(sample)
        clear = interval is None or interval.low > 0 or interval.high < 0
        wrong += clear and directed_test(sample) <= LEVEL
    return wrong / draws


def false_equivalences(
    shape: Shape, spreads: Sequence[float], n: int, *, draws: int, seed: int = 0
) -> float | None:
    """Return how often a difference of exactly the margin is called equivalent; None if never told.

    Args:
        shape: Of the paired differences; both signs of the margin are tried by turns.
        spreads: One for each task.
        n: Pairs on each task.
        draws: Samples.
        seed: Seed of the samples.
    """
    margin = 3 * _error(spreads, n)
    wrong, judged = 0, 0
    for k, sample in enumerate(_samples(shape, spreads, n, draws, seed)):
        sign = 1 if k % 2 else -1
        found = equivalence({task: each + sign * margin for task, each in sample.items()}, margin)
        judged += found is not None
        wrong += found is not None and found.shown
    return wrong / judged if judged else None


def shown_at_the_least(
    shape: Shape, spreads: Sequence[float], n: int, *, draws: int, seed: int = 0
) -> float | None:
    """Return how often the difference that is said to be shown with 80 % is shown; None if none is.

    Args:
        shape: Of the paired differences.
        spreads: One for each task.
        n: Pairs on each task.
        draws: Samples.
        seed: Seed of the samples.
    """
    if next(iter(_intervals(shape, spreads, n, seed))) is None:
        return None
    least = one_task_effect(n) * spreads[0]
    if len(spreads) > 1:
        least = several_tasks_effect(spreads, [n] * len(spreads))
    shown = 0
    for sample in _samples(shape, spreads, n, draws, seed):
        moved = {task: each + least for task, each in sample.items()}
        interval = combined_interval(moved)
        shown += interval is not None and interval.low > 0 and directed_test(moved) <= LEVEL
    return shown / draws


def student_coverage(
    shape: Shape, spreads: Sequence[float], n: int, *, draws: int, seed: int = 0
) -> float:
    """Return what Student's and Welch's 95 % interval would hold where none is printed: the reason.

    Args:
        shape: Of the paired differences.
        spreads: One for each task.
        n: Pairs on each task, at least two.
        draws: Samples.
        seed: Seed of the samples.
    """
    from scipy.special import stdtrit

    held = 0
    for sample in _samples(shape, spreads, n, draws, seed):
        found = combined_spread(sample)
        held += abs(found.mean) <= float(stdtrit(found.freedom, 0.975)) * found.error
    return held / draws


def false_delays(n: int, *, draws: int, stuck: float = STUCK, seed: int = 0) -> float:
    """Return how often the log-rank test finds a delay where variant and baseline are the same.

    Args:
        n: Pairs.
        draws: Samples.
        stuck: Share of runs that never escape.
        seed: Seed of the samples.
    """
    random = np.random.default_rng(derive(seed, "delays", n))
    end, wrong = 600, 0
    for _ in range(check_positive("draws", draws)):
        at = np.where(random.random(2 * n) < stuck, 2 * end, 50 * random.integers(1, 13, 2 * n))
        runs = [EscapeTime(int(min(u, end)), escaped=bool(u <= end)) for u in at]
        wrong += log_rank_test(dict(enumerate(runs[:n])), dict(enumerate(runs[n:]))) <= LEVEL
    return wrong / draws


def shape_of(name: str) -> Shape:
    """Return a shape by its name."""
    return SHAPES[check_name("shape", name, SHAPES)]


def resampled(residuals: Numbers) -> Shape:
    """Return the shape that draws from residuals of real runs, centred and of spread 1.

    Args:
        residuals: Differences minus their cell's mean.
    """
    centred = residuals - residuals.mean()
    pool: Numbers = centred / centred.std()

    def draw(random: np.random.Generator, size: tuple[int, ...]) -> Numbers:
        drawn: Numbers = random.choice(pool, size)
        return drawn

    return draw


def _exchangeable(shape: Shape) -> Shape:
    def draw(random: np.random.Generator, size: tuple[int, ...]) -> Numbers:
        return (shape(random, size) - shape(random, size)) / 2**0.5

    return draw


def _samples(
    shape: Shape, spreads: Sequence[float], n: int, draws: int, seed: int
) -> Iterator[dict[str, Numbers]]:
    random = np.random.default_rng(derive(seed, "validation", n, len(spreads)))
    for each in shape(random, (check_positive("draws", draws), len(spreads), n)):
        yield {str(t): spread * each[t] for t, spread in enumerate(spreads)}


def _intervals(shape: Shape, spreads: Sequence[float], n: int, seed: int) -> Iterator[object]:
    return (combined_interval(each) for each in _samples(shape, spreads, n, 1, seed))


def _error(spreads: Sequence[float], n: int) -> float:
    return float((np.array(spreads) ** 2).sum() / n) ** 0.5 / len(spreads)
