"""What a linear model reads off a task without any sequence model: its counts, or its pixels.

    score = x W,    W by least squares on one-hot labels with a ridge chosen on a tenth of train

A sequence model below this line has not yet learned what needs no sequence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Classes = NDArray[np.integer]
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Tried, as a share of the examples."""


def symbol_counts(tokens: Classes, offsets: Classes, symbols: int) -> Numbers:
    """Count every symbol of every example: a bag of bytes.

    Args:
        tokens: The symbols of all examples, one after the other.
        offsets: Where each begins, and the end of the last: [examples + 1].
        symbols: How many different ones there are.

    Returns:
        [examples, symbols].
    """
    if len(tokens) != int(offsets[-1]) or (len(tokens) and int(tokens.max()) >= symbols):
        raise ValueError(
            f"`tokens` must be {int(offsets[-1])} symbols below {symbols}, got {len(tokens)} up to "
            f"{int(tokens.max()) if len(tokens) else 0}; give offsets and symbols of the same split"
        )
    examples = len(offsets) - 1
    which = np.repeat(np.arange(examples), np.diff(offsets).astype(np.int64))
    flat = np.bincount(which * symbols + tokens, minlength=examples * symbols)
    return flat.reshape(examples, symbols).astype(np.float64)


def pair_counts(first: Numbers, second: Numbers) -> Numbers:
    """Return what two bags of bytes share and differ in: [examples, 2 · symbols].

    |a − b|  and  √(a b),    symbol by symbol
    """
    return np.concatenate((np.abs(first - second), np.sqrt(first * second)), axis=1)


def linear_accuracy(x: Numbers, y: Classes, test_x: Numbers, test_y: Classes) -> float:
    """Return the test accuracy (%) of the best linear least-squares classifier.

    Args:
        x: Training features, [examples, features]; in random order, their last tenth chooses the
            ridge.
        y: Their classes.
        test_x: Test features.
        test_y: Their classes.
    """
    if len(x) != len(y) or len(test_x) != len(test_y) or len(x) < 10:
        raise ValueError(
            f"`x` and `y` must be at least 10 of one number, got {len(x)} and {len(y)} (test "
            f"{len(test_x)} and {len(test_y)}); take both from one split"
        )
    middle, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    train, test = (
        np.concatenate(((each - middle) / spread, np.ones((len(each), 1))), axis=1)
        for each in (x, test_x)
    )
    wanted = np.eye(int(max(y.max(), test_y.max())) + 1)[y]
    kept = len(x) * 9 // 10

    def right(ridge: float, until: int, on: Numbers, classes: Classes) -> float:
        part = train[:until]
        gram = part.T @ part + ridge * until * np.eye(train.shape[1])
        weights = np.linalg.solve(gram, part.T @ wanted[:until])
        return float(((on @ weights).argmax(axis=1) == classes).mean())

    best = max(RIDGES, key=lambda ridge: right(ridge, kept, train[kept:], y[kept:]))
    return 100 * right(best, len(x), test, test_y)
