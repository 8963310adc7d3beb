"""Looking before the end, without paying for it twice: Lan–DeMets' O'Brien–Fleming spending.

Who looks at 6, 8 and 10 pairs and stops at the first p ≤ 5 % is wrong more often than in 5 % of
the cases. A spending function gives each look its share of the 5 %, little at first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from depthpde.errors import check_range

GRID = 2001
"""Points on which the density of what was not yet stopped is kept."""
WIDEST = 9.0
"""No look's bar is beyond this many standard deviations in double precision."""


def spent(information: float, *, level: float = 0.05) -> float:
    """Return how much of the level may be used up when a share of the information is there.

        α(t) = 2 − 2 Φ(z / √t),   z the level's two-sided quantile

    Args:
        information: Share of the planned pairs, above 0 to 1.
        level: Of the whole study, two-sided.
    """
    from scipy.special import ndtr, ndtri

    check_range("information", information, 1e-9, 1.0)
    z = float(ndtri(1 - check_range("level", level, 1e-6, 0.5) / 2))
    return float(2 * ndtr(-z / information**0.5))


def looks(pairs: Sequence[int], *, level: float = 0.05) -> list[float]:
    """Return the nominal two-sided p at which each look may stop.

        P(|Z_j| ≥ b_j for the first time at look k) = α(t_k) − α(t_{k−1}),    t_k = n_k / n_last

    Z_k is the mean so far over its error; B_k = Z_k √t_k has independent increments, so the density
    of what has not stopped is carried from look to look by one convolution.

        looks([6, 8, 10])       # [0.0114, 0.0244, 0.0392]: a p below the first stops at six pairs

    Args:
        pairs: How many there are at each look, increasing; the last is the plan's whole.
        level: Of all looks together.
    """
    times = _checked(pairs)
    budget = np.diff([0.0, *(spent(each, level=level) for each in times)])
    from scipy.special import ndtr

    found: list[float] = []
    grid = density = np.zeros(0)
    before = 0.0
    for t, share in zip(times, budget, strict=True):
        bar = _bar(grid, density, t - before, t, float(share))
        found.append(float(2 * ndtr(-bar)))
        grid, density = _carried(grid, density, t - before, bar * t**0.5)
        before = t
    return found


def total_error(pairs: Sequence[int], levels: Sequence[float]) -> float:
    """Return the chance that any look stops where there is nothing.

        total_error([6, 8, 10], [0.05, 0.05, 0.05])       # 0.091: three looks, each at 5 %

    Args:
        pairs: How many there are at each look, increasing.
        levels: The nominal two-sided p at which each stops.
    """
    from scipy.special import ndtri

    grid = density = np.zeros(0)
    before = total = 0.0
    for t, level in zip(_checked(pairs), levels, strict=True):
        bar = float(ndtri(1 - check_range("levels", level, 1e-12, 0.5) / 2))
        total += _beyond(grid, density, t - before, bar * t**0.5)
        grid, density = _carried(grid, density, t - before, bar * t**0.5)
        before = t
    return total


def _checked(pairs: Sequence[int]) -> list[float]:
    if not pairs or min(pairs) < 1 or list(pairs) != sorted(set(pairs)):
        raise ValueError(
            f"`pairs` must be increasing whole numbers of at least 1, got {list(pairs)}; give "
            "how many pairs there are at each look"
        )
    return [each / pairs[-1] for each in pairs]


def _beyond(grid: np.ndarray, density: np.ndarray, step: float, bar: float) -> float:
    """Return the chance of being beyond ±bar after one more step of the walk."""
    from scipy.special import ndtr

    if not len(grid):
        return float(2 * ndtr(-bar / step**0.5))
    tail = ndtr((grid - bar) / step**0.5) + ndtr((-bar - grid) / step**0.5)
    return float(np.trapezoid(density * tail, grid))


def _bar(grid: np.ndarray, density: np.ndarray, step: float, t: float, share: float) -> float:
    """Return the bar on Z that spends a share at this look."""
    from scipy.optimize import brentq

    def excess(z: float) -> float:
        return _beyond(grid, density, step, z * t**0.5) - share

    return float(brentq(excess, 0.0, WIDEST))


def _carried(
    grid: np.ndarray, density: np.ndarray, step: float, edge: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the density after a step, on the part of the line that does not stop."""
    inside = np.linspace(-edge, edge, GRID)

    def normal(x: np.ndarray) -> np.ndarray:
        return np.exp(-(x**2) / (2 * step)) / (2 * np.pi * step) ** 0.5

    if not len(grid):
        return inside, normal(inside)
    return inside, np.trapezoid(density * normal(inside[:, None] - grid), grid, axis=1)
