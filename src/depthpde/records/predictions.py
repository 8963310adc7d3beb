"""What the predictions of committed runs show: where a gain lies, and how alike two systems are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

CLOSE = 14
"""ListOps' closing bracket; digits are 0 … 9, operators 10 … 13."""

Classes = NDArray[np.integer]


def root_arguments(
    tokens: Classes, offsets: Classes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the arguments of each ListOps expression's root, and how many are its own digits.

        [MAX 4 3 [MIN 2 3 ] 1 ]   →   4 arguments, 3 own digits

    A digit of the root stands beside its operator, other digits and brackets; what a nested list is
    worth has to be computed first. So own digits are what local mixing can read.

    Args:
        tokens: The symbols of all expressions, one after the other.
        offsets: Where each begins, and the end of the last: [examples + 1].

    Returns:
        Own digits and arguments of each root.
    """
    depth_change = np.where((tokens >= 10) & (tokens < CLOSE), 1, np.where(tokens == CLOSE, -1, 0))
    depth = np.cumsum(depth_change)
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    if len(tokens) != int(offsets[-1]) or np.any(depth[ends - 1] != 0):
        raise ValueError(
            f"`tokens` must be {int(offsets[-1])} symbols of closed lists, got {len(tokens)}; "
            "take stored symbols, without the shift for padding"
        )
    digit = (tokens < 10) & (depth == 1)
    nested = (depth_change == 1) & (depth == 2)
    counts = [np.add.reduceat(each.astype(np.int64), starts) for each in (digit, digit | nested)]
    return counts[0], counts[1]


def gain_by_group(
    variant: Mapping[int, Classes],
    baseline: Mapping[int, Classes],
    labels: Classes,
    groups: Classes,
) -> dict[int, dict[int, float]]:
    """Return by how many points a variant is better on each group of the test examples.

        100 · mean over the group of (variant right − baseline right),    for each seed

    Args:
        variant: Seed → predicted class of each test example.
        baseline: Likewise; seeds that only one has are left out.
        labels: The right classes.
        groups: The group of each example, as a whole number.

    Returns:
        Group → seed → points.
    """
    lengths = {len(each) for each in (*variant.values(), *baseline.values(), labels, groups)}
    if len(lengths) != 1:
        raise ValueError(
            f"`variant`, `baseline`, `labels` and `groups` must be of one length, got "
            f"{sorted(lengths)}; take all from the same split"
        )
    found: dict[int, dict[int, float]] = {}
    for group in np.unique(groups):
        inside = groups == group
        found[int(group)] = {
            s: 100 * float(np.mean((variant[s] == labels)[inside]) -
                           np.mean((baseline[s] == labels)[inside]))
            for s in sorted(set(variant) & set(baseline))
        }  # fmt: skip
    return found


def agreement_beyond_chance(first: Classes, second: Classes) -> float:
    """Return how alike two systems answer, corrected for what their shares of classes explain.

        κ = (p_same − p_chance) / (1 − p_chance),    p_chance = Σ_c share_c(first) share_c(second)

    1: always the same; 0: as two that answer with the same shares at random (Cohen). Two systems
    that both name one class throughout agree by chance alone: 0.

    Args:
        first: Predicted class of each test example.
        second: Likewise, of the other system.
    """
    if len(first) != len(second) or not len(first):
        raise ValueError(
            f"`first` and `second` must be answers to the same examples, got {len(first)} and "
            f"{len(second)}; take both from one split"
        )
    classes = int(max(first.max(), second.max())) + 1
    shares = [np.bincount(each, minlength=classes) / len(each) for each in (first, second)]
    chance = float(shares[0] @ shares[1])
    same = float(np.mean(first == second))
    return (same - chance) / (1 - chance) if chance < 1 else 0.0


def agreements(
    first: Mapping[str, Mapping[int, Classes]], second: Mapping[str, Mapping[int, Classes]]
) -> dict[str, dict[int, float]]:
    """Return how alike two systems answer, for each task and seed that both have.

    Compare like with like: a system without norms with the other without norms.

    Args:
        first: Task → seed → predicted class of each test example.
        second: Likewise, of the other system.
    """
    return {
        task: {
            s: agreement_beyond_chance(first[task][s], second[task][s])
            for s in sorted(set(first[task]) & set(second[task]))
        }
        for task in first
        if task in second
    }
