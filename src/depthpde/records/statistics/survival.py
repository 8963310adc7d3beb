"""Time to escape: for tasks that are learned at once or not yet, never inside a mean.

A run either has left the plateau by some update, or training ended first (censored). What can be
told of such runs is the share still on the plateau, and whether one variant leaves it later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from depthpde.errors import check_positive, check_range
from depthpde.records.statistics.samples import Numbers
from depthpde.seeds import derive

SWAPPED_UP_TO = 14
"""Most pairs whose 2ⁿ exchanges are all tried; beyond, as many at random."""


@dataclass(frozen=True, slots=True)
class EscapeTime:
    """When a run left its plateau."""

    update: int
    """The first update beyond the plateau; the last update of training where it never was."""
    escaped: bool
    """False: training ended on the plateau, so that the time is only known to be later."""


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """The share of runs still on the plateau after each time of an escape."""

    times: tuple[int, ...]
    """Updates at which runs escaped, increasing."""
    staying: tuple[float, ...]
    """Share still on the plateau from each of them on."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """95 % band of the share, pointwise: log(−log S) by Greenwood; 0 to 1 where S is 0 or 1."""

    @property
    def median(self) -> int | None:
        """The first update by which half of the runs have escaped; None where they have not."""
        reached = (t for t, share in zip(self.times, self.staying, strict=True) if share <= 0.5)
        return next(reached, None)


def escape_time(
    curve: Sequence[tuple[int, float]], line: float, *, examples: int, final: float | None = None
) -> EscapeTime:
    """Return when a run's accuracy left a plateau for two looks in a row.

        first update u_k with a_k and a_{k+1} > line + 3 √(line (100 − line) / examples)

    Two looks, because one of a few hundred examples is beyond three errors by chance once in 700
    times, and a curve has many. A collapse later on does not undo an escape.

    Args:
        curve: (update, accuracy in percent), in order.
        line: The plateau, in percent.
        examples: Behind each accuracy of the curve: batch size × updates between two points.
        final: Test accuracy at the end, as the last look; leave out if not known.
    """
    if not curve or [u for u, _ in curve] != sorted({u for u, _ in curve}):
        raise ValueError(
            f"`curve` must hold updates in increasing order, got {[u for u, _ in curve][:5]}"
        )
    check_range("line", line, 0.0, 100.0)
    bar = line + 3 * (line * (100 - line) / check_positive("examples", examples)) ** 0.5
    values = [value for _, value in curve] + ([] if final is None else [final])
    for k in range(len(values) - 1):
        if values[k] > bar and values[k + 1] > bar:
            return EscapeTime(curve[k][0], escaped=True)
    return EscapeTime(curve[-1][0], escaped=False)


def kaplan_meier(runs: Sequence[EscapeTime]) -> SurvivalCurve:
    """Estimate the share still on the plateau, runs that never escaped counted as long as they ran.

        S(t) = Π over escapes at u ≤ t of (1 − escapes at u / runs still there just before u)

    Args:
        runs: One for each seed of one variant.
    """
    if not runs:
        raise ValueError("`runs` must hold at least one escape time, got none; run a seed")
    times = sorted({each.update for each in runs if each.escaped})
    share, greenwood = 1.0, 0.0
    staying, low, high = [], [], []
    for t in times:
        there = sum(each.update >= t for each in runs)
        gone = sum(each.update == t and each.escaped for each in runs)
        share *= 1 - gone / there
        greenwood += gone / (there * (there - gone)) if there > gone else np.inf
        ends = _band(share, greenwood)
        staying.append(share)
        low.append(ends[0])
        high.append(ends[1])
    return SurvivalCurve(tuple(times), tuple(staying), tuple(low), tuple(high))


def log_rank_test(
    variant: Mapping[int, EscapeTime], baseline: Mapping[int, EscapeTime], *, seed: int = 0
) -> float:
    """Return the two-sided p that a variant escapes at another time than its baseline.

        U = Σ over times of (escapes of the variant − what its share of the runs there predicts)
        p = share of the 2ⁿ exchanges within pairs with |U| ≥ |observed U|

    Exact: without an effect the two runs of a pair could as well be exchanged. The usual χ² is
    wrong for six runs. Never below 2^(1 − n).

    Args:
        variant: Seed → escape time.
        baseline: The same seeds; those that only one has are left out.
        seed: Seed of the random exchanges beyond 14 pairs.
    """
    seeds = sorted(set(variant) & set(baseline))
    if not seeds:
        raise ValueError("`variant` must share a seed with the baseline, got none; run both alike")
    runs = [variant[s] for s in seeds] + [baseline[s] for s in seeds]
    scores = _log_rank_scores(runs)
    # U is linear in which run of a pair is the variant's: half the scores' difference, either sign.
    halves = (scores[: len(seeds)] - scores[len(seeds) :]) / 2
    signs = _exchanges(len(seeds), seed)
    sums = np.abs(signs @ halves)
    observed = abs(float(halves.sum()))
    return float(np.mean(sums >= observed - 1e-9))


def _log_rank_scores(runs: Sequence[EscapeTime]) -> Numbers:
    """Return each run's part of U: its escape minus the hazard that it passed through.

    c_i = escaped_i − Σ over times u ≤ update_i of escapes at u / runs still there
    """
    times = sorted({each.update for each in runs if each.escaped})
    hazard = {
        t: sum(r.update == t and r.escaped for r in runs) / sum(r.update >= t for r in runs)
        for t in times
    }
    return np.array(
        [float(r.escaped) - sum(hazard[t] for t in times if t <= r.update) for r in runs]
    )


def _exchanges(n: int, seed: int) -> NDArray[np.int8]:
    if n <= SWAPPED_UP_TO:
        return (((np.arange(2**n)[:, None] >> np.arange(n)) & 1) * 2 - 1).astype(np.int8)
    random = np.random.default_rng(derive(seed, "log-rank"))
    drawn = random.integers(0, 2, (2**SWAPPED_UP_TO, n), "i1") * 2 - 1
    drawn[0] = 1  # the observed one counts
    return drawn


def _band(share: float, greenwood: float) -> tuple[float, float]:
    if not 0 < share < 1:
        return (0.0, 1.0)
    width = 1.959964 * greenwood**0.5 / abs(np.log(share))
    return float(share ** np.exp(width)), float(share ** np.exp(-width))
