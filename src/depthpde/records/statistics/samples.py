"""Samples of numbers, checked where they enter."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Differences = Mapping[str, ArrayLike]
"""Task → paired differences, variant − baseline, one for each seed."""


def check_sample(name: str, values: ArrayLike, *, at_least: int = 1) -> Numbers:
    """Return a list of finite numbers as an array, or raise with what is wrong with it.

    Args:
        name: What to call it in the message.
        values: The numbers.
        at_least: How many there must be.
    """
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or len(found) < at_least:
        raise ValueError(
            f"`{name}` must be a list of at least {at_least} number(s), got shape "
            f"{list(found.shape)}; run more seeds"
        )
    if not np.isfinite(found).all():
        raise ValueError(
            f"`{name}` must hold finite numbers, got {found[~np.isfinite(found)][0]}; give a run "
            "that diverged its accuracy at the end, or leave the seed out on both sides"
        )
    return found


def check_strata(differences: Differences, *, at_least: int = 1) -> list[Numbers]:
    """Return the differences of each task as arrays, in their order, or raise with what is wrong.

    Args:
        differences: Task → paired differences.
        at_least: Pairs that every task must have.
    """
    if not differences:
        raise ValueError("`differences` must hold at least one task, got none; give task → numbers")
    return [check_sample(task, each, at_least=at_least) for task, each in differences.items()]
