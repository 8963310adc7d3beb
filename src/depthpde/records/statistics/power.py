"""Power: the least difference that the pairs at hand would have shown.

"Not shown" says little before one knows what would have been shown. The rule whose power is meant
is the one of `verdicts`: the 95 % interval leaves out 0, and the exact p is at most 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from depthpde.errors import check_range
from depthpde.records.statistics.combination import LEAST_PAIRS
from depthpde.records.statistics.samples import Differences, Numbers, check_strata
from depthpde.seeds import derive

POWER = 0.80
"""Chance of showing a difference from which a study counts as able to."""
LEVEL = 0.05
"""Of the two-sided rule."""
SIMULATED_UP_TO = 12
"""Most pairs of one task whose power is simulated; sign flips differ little from t beyond."""
DRAWS = 4000
"""Simulated samples of one task: δ is known to about 1 %."""
SEVERAL_DRAWS = 1000
"""Simulated samples of several tasks: to about 2 %, in a twentieth of a second."""
BISECTIONS = 16
"""Halvings of the range in which each sample's least effect is sought."""


def detectable(differences: Differences, *, power: float = POWER) -> float | None:
    """Return the least true mean that such pairs would show; None where they can show none.

        P(the rule shows a side of 0 | normal pairs of mean δ on every task) = power

    The wrong side of 0 shown counts as a failure. The spreads are those of the pairs themselves;
    the least difference is as uncertain as they are. None below six pairs on a task.

        detectable({"listops": [1.4, 1.9, 1.1, 2.0, 1.7, 1.5]})          # 0.59: δ(6) = 1.8 spreads

    Args:
        differences: Task → paired differences.
        power: Chance of showing it.
    """
    check_range("power", power, 0.5, 0.99)
    strata = check_strata(differences)
    if min(len(each) for each in strata) < LEAST_PAIRS:
        return None
    spreads = [float(each.std(ddof=1)) if np.ptp(each) else 0.0 for each in strata]
    if len(strata) == 1:
        return one_task_effect(len(strata[0]), power) * spreads[0]
    if not any(spreads):
        return 0.0
    return several_tasks_effect(spreads, [len(each) for each in strata], power)


def one_task_effect(n: int, power: float = POWER) -> float:
    """Return δ(n), the mean in standard deviations that n pairs of one task show.

    Args:
        n: Pairs, at least six.
        power: Chance of showing it.
    """
    check_range("n", n, LEAST_PAIRS, float("inf"), advice="fewer pairs can show nothing")
    if n <= SIMULATED_UP_TO:
        return _sign_flip_effect(n, power)
    return _student_effect(n, power)


def several_tasks_effect(
    spreads: Sequence[float], sizes: Sequence[int], power: float = POWER
) -> float:
    """Return the mean on every one of several tasks that interval and test show together.

        quantile over normal samples of the least δ with
        Δ + δ > t_ν e   and   Σ_t z_t(d + δ) > 1.96 √T

    Simulated, because the two parts of the rule agree more or less as the spreads do; the sum of
    studentised tasks is compared with its normal limit.

    Args:
        spreads: Standard deviation of the paired differences of each task.
        sizes: Pairs on each.
        power: Chance of showing it.
    """
    from scipy.special import stdtrit

    random = np.random.default_rng(derive(0, "power", *sizes))
    draws = [
        s * random.standard_normal((SEVERAL_DRAWS, n)) for s, n in zip(spreads, sizes, strict=True)
    ]
    tasks = len(draws)
    parts = np.array([each.var(axis=1, ddof=1) / each.shape[1] for each in draws]) / tasks**2
    error = parts.sum(axis=0) ** 0.5
    freedom = error**4 / (parts**2 / (np.array(sizes)[:, None] - 1)).sum(axis=0)
    mean = np.mean([each.mean(axis=1) for each in draws], axis=0)
    by_interval: Numbers = stdtrit(freedom, 1 - LEVEL / 2) * error - mean
    low, high = np.zeros(SEVERAL_DRAWS), np.full(SEVERAL_DRAWS, 20 * max(spreads))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        reached = _studentised_sum(draws, middle) > 1.959964 * tasks**0.5
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return float(np.quantile(np.maximum(by_interval, high), power))


def power_sentence(pairs: int, least: float | None, *, unit: str = "points") -> str:
    """Describe in a sentence what the pairs could have shown.

    Args:
        pairs: How many there are.
        least: What `detectable` gave.
        unit: Of the differences.
    """
    if least is None:
        return f"cannot be told from {pairs} pairs"
    size = f"{least:.2g}" if least < 10 else f"{least:.0f}"
    return f"{pairs} pairs would have shown {size} {unit} with {100 * POWER:.0f} %"


@lru_cache(maxsize=64)
def _sign_flip_effect(n: int, power: float) -> float:
    """Return the quantile of how far the interval's lower end lies below the truth.

    The interval of z + δ is that of z, moved by δ: it leaves out 0 from below iff low(z) > −δ.
    """
    random = np.random.default_rng(derive(0, "power", n))
    z = random.standard_normal((DRAWS, n))
    members = ((np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    members /= members.sum(axis=1, keepdims=True)
    rank = int(2**n * LEVEL / 2 + 1e-9) - 1
    low: Numbers = np.concatenate(
        [np.partition(each @ members.T, rank, axis=1)[:, rank] for each in np.split(z, 40)]
    )
    return float(np.quantile(-low, power))


def _studentised_sum(draws: Sequence[Numbers], shift: Numbers) -> Numbers:
    """Return Σ_t z_t of samples moved by a shift each."""
    moved = [each + shift[:, None] for each in draws]
    total: Numbers = np.sum(
        [each.sum(axis=1) / np.sqrt((each**2).sum(axis=1)) for each in moved], axis=0
    )
    return total


def _student_effect(n: int, power: float) -> float:
    """Return the mean in standard deviations at which a two-sided t-test of n pairs shows it.

    P(t_{n−1}(δ √n) > t_{n−1,0.975}) = power,    t(·) noncentral
    """
    from scipy.optimize import brentq
    from scipy.special import nctdtr, stdtrit

    bar = float(stdtrit(n - 1, 1 - LEVEL / 2))

    def lacking(noncentrality: float) -> float:
        return 1 - float(nctdtr(n - 1, noncentrality, bar)) - power

    return float(brentq(lacking, 0.0, bar + 6.0)) / n**0.5
