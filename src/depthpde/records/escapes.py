"""Escapes from a plateau: how many runs are past a trivial line, and when each left it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from depthpde.errors import check_positive, check_range
from depthpde.records.record import Record, State
from depthpde.records.statistics.interval import Interval, IntervalMethod
from depthpde.records.statistics.survival import EscapeTime, escape_time

LEARNED_AT_ONCE: Mapping[str, float] = {"pathfinder-mini": 57.2, "pathfinder": 55.8, "pathx": 50.0}
"""Task → its plateau in percent: the distance of the marks, which a probe reads (docs/data.md).

A run is at the plateau or far above it. A mean over runs then counts escapes in points, and its
interval holds the truth in 71 to 92 % (benchmarks/inference.py): such a task stands in no mean.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Escape:
    """How many runs got past a line."""

    line: float
    """The line, in percent."""
    margin: float
    """An accuracy must exceed the line by more than this, in points."""
    escaped: int
    n: int
    interval: Interval
    """For the rate; exact (Clopper–Pearson)."""

    @property
    def rate(self) -> float:
        """Share of the runs that got past."""
        return self.escaped / self.n


def standard_error(accuracy: float, examples: int) -> float:
    """Return the sampling error of an accuracy, in points.

        √(a (100 − a) / examples)

    What the test set alone leaves open; the spread over seeds comes on top.
    """
    a = check_range("accuracy", accuracy, 0.0, 100.0)
    return float((a * (100.0 - a) / check_positive("examples", examples)) ** 0.5)


def escape_rate(
    accuracies: ArrayLike, line: float, *, examples: int, level: float = 0.95
) -> Escape:
    """Count the runs that are past a plateau, beyond what its sampling error explains.

        escaped:   accuracy > line + 3 · standard_error(line, examples)

    A run that sits exactly on the plateau is counted as past it about once in 700 times.

    Args:
        accuracies: One for each run, in percent.
        line: The plateau, in percent.
        examples: Examples in the test set.
        level: Of the interval for the rate.
    """
    from scipy.special import betaincinv  # scipy.stats takes a second to import

    runs = np.asarray(accuracies, dtype=np.float64)
    if runs.ndim != 1 or not len(runs):
        raise ValueError(
            f"`accuracies` must be a list with one number a run, got shape {list(runs.shape)}"
        )
    margin = 3 * standard_error(line, examples)
    escaped, n = int((runs > line + margin).sum()), len(runs)
    tail = (1 - check_range("level", level, 0.5, 0.9999)) / 2
    low = float(betaincinv(escaped, n - escaped + 1, tail)) if escaped else 0.0
    high = float(betaincinv(escaped + 1, n - escaped, 1 - tail)) if escaped < n else 1.0
    return Escape(
        line=line,
        margin=margin,
        escaped=escaped,
        n=n,
        interval=Interval(low=low, high=high, level=level, method=IntervalMethod.EXACT),
    )


def run_escape(record: Record, line: float) -> EscapeTime | None:
    """Return when one finished run left its plateau; None without a result or a readable curve.

    A run that diverged on its plateau never leaves it, so it counts as having stayed to the end: a
    test that stopped counting it where it broke would leave out what breaks.

    Args:
        record: The run.
        line: The plateau, in percent.
    """
    return record.keep(f"escape {line}", lambda: _run_escape(record, line))


def _run_escape(record: Record, line: float) -> EscapeTime | None:
    try:
        points = [] if record.result is None else record.points()
        curve = [(int(each["update"]), float(each["accuracy"])) for each in points]
        training = record.config.get("training") or {}
        examples = int(training.get("batch_size", 0)) * int(training.get("log_every", 0))
        updates = int(training.get("updates", 0))
    except (ValueError, KeyError, TypeError, OSError):  # the page lists what is broken
        return None
    broken = record.state is State.DIVERGED
    if not examples or not (curve or broken):
        return None
    final = None if broken else record.accuracy
    found = escape_time(curve, line, examples=examples, final=final) if curve else None
    if broken and (found is None or not found.escaped):
        return EscapeTime(updates, escaped=False)
    return found
