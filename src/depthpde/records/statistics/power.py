"""Power: the least difference that the pairs at hand would have shown.

"Not shown" says little before one knows what would have been shown. The rule whose power is meant
is the one of `verdicts`: the 95 % interval leaves out 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from depthpde.errors import check_positive, check_range
from depthpde.records.statistics.combination import LEAST_PAIRS, combined_spread
from depthpde.records.statistics.samples import Differences, Numbers, check_strata
from depthpde.seeds import derive

POWER = 0.80
"""Chance of showing a difference from which a study counts as able to."""
LEVEL = 0.05
"""Of the two-sided rule."""
SIMULATED_UP_TO = 12
"""Most pairs of one task whose power is simulated; sign flips differ little from t beyond."""
DRAWS = 4000
"""Simulated samples: δ is known to about 1 %."""


def detectable(differences: Differences, *, power: float = POWER) -> float | None:
    """Return the least true mean that such pairs would show; None where they can show none.

        one task        δ(n) s          P(sign-flip interval of n normal pairs of mean δ leaves out
                                        0) = power
        several tasks   δ(ν) e          P(t_ν(δ) > t_ν,0.975) = power,   t_ν(δ) noncentral

    The wrong side of 0 shown counts as a failure.
    Spread and error are those of the pairs themselves; the least difference is as uncertain as
    they are. None below six pairs on a task.

        detectable({"listops": [1.4, 1.9, 1.1, 2.0, 1.7, 1.5]})          # 0.59: δ(6) = 1.8 spreads

    Args:
        differences: Task → paired differences.
        power: Chance of showing it.
    """
    check_range("power", power, 0.5, 0.99)
    strata = check_strata(differences)
    if min(len(each) for each in strata) < LEAST_PAIRS:
        return None
    if len(strata) == 1 and len(strata[0]) <= SIMULATED_UP_TO:
        return _sign_flip_effect(len(strata[0]), power) * float(strata[0].std(ddof=1))
    found = combined_spread(differences)
    return _noncentral_effect(found.freedom, power) * found.error if found.error else 0.0


def pairs_needed(spread: float, effect: float, *, power: float = POWER, most: int = 1000) -> int:
    """Return how many pairs of one task would show a mean difference.

        least n ≥ 6 with δ(n) · spread ≤ |effect|

    Args:
        spread: Standard deviation of the paired differences.
        effect: The mean difference to show.
        power: Chance of showing it.
        most: Give up beyond this many.
    """
    if not (np.isfinite(spread) and spread > 0 and np.isfinite(effect) and effect):
        raise ValueError(
            f"`spread` must be above 0 and `effect` other than 0, got {spread!r} and {effect!r}"
        )
    for n in range(LEAST_PAIRS, check_positive("most", most) + 1):
        if one_task_effect(n, power) * spread <= abs(effect):
            return n
    raise ValueError(
        f"`effect` must be large enough to show with {most} pairs, got {effect:g} at a spread of "
        f"{spread:g}; lower the spread or ask for a larger effect"
    )


def one_task_effect(n: int, power: float = POWER) -> float:
    """Return δ(n), the mean in standard deviations that n pairs of one task show.

    Args:
        n: Pairs, at least six.
        power: Chance of showing it.
    """
    check_range("n", n, LEAST_PAIRS, float("inf"), advice="fewer pairs can show nothing")
    if n <= SIMULATED_UP_TO:
        return _sign_flip_effect(n, power)
    return _noncentral_effect(n - 1.0, power) / n**0.5


def power_sentence(pairs: int, least: float | None, *, unit: str = "points") -> str:
    """Say in a sentence what the pairs could have shown.

    Args:
        pairs: How many there are.
        least: What `detectable` gave.
        unit: Of the differences.
    """
    if least is None:
        return f"cannot be told from {pairs} pairs"
    return f"{pairs} pairs would have shown {least:.2g} {unit} with {POWER:.0%}".replace("%", " %")


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


def _noncentral_effect(freedom: float, power: float) -> float:
    """Return the noncentrality at which a two-sided t-test shows the right side so often."""
    from scipy.optimize import brentq
    from scipy.special import nctdtr, stdtrit

    bar = float(stdtrit(freedom, 1 - LEVEL / 2))

    def lacking(delta: float) -> float:
        return 1 - float(nctdtr(freedom, delta, bar)) - power

    return float(brentq(lacking, 0.0, bar + 6.0))
