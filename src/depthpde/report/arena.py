"""Long Range Arena: its two averages, the lines that need no learning, and who got past them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from depthpde.errors import check_name, check_positive, check_range
from depthpde.records.statistics.paired import Interval, IntervalMethod, mean

FIVE = ("listops", "text", "retrieval", "image", "pathfinder")
SIX = (*FIVE, "pathx")
FAILED = 50.0
"""Accuracy that a failed Path-X counts as: chance."""

TRIVIAL: Mapping[str, Mapping[str, float]] = {
    "listops": {"majority": 16.9, "root operator": 36.1, "root operator and its digits": 42.0},
    "text": {"majority": 50.0},
    "retrieval": {"majority": 50.0},
    "image": {"majority": 10.0},
    "pathfinder": {"majority": 50.0},
    "pathx": {"majority": 50.0},
}
"""Task → percent reached without long range. Mini tasks bring theirs in the manifest."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Both averages in circulation; never compare one with the other."""

    five: float
    """Without Path-X: the LRA README, Nyströmformer, Luna."""
    six: float | None
    """With Path-X, 50 where it failed: S4 and after. None where it was not tried."""


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


def lra_averages(accuracies: Mapping[str, float | None]) -> Averages:
    """Average test accuracies in percent over five and over six tasks.

    Args:
        accuracies: Task → percent. For ``pathx``, None means tried and failed, and counts 50;
            a missing key means not tried.
    """
    for task in accuracies:
        check_name("accuracies", task, SIX)
    missing = [task for task in FIVE if accuracies.get(task) is None]
    if missing:
        raise ValueError(
            f"`accuracies` must hold all of {', '.join(FIVE)}, got none for {', '.join(missing)}; "
            "an average over fewer tasks is not an LRA average"
        )
    found = {task: FAILED if each is None else each for task, each in accuracies.items()}
    for task, each in found.items():
        check_range(task, each, 0.0, 100.0)
    five = mean([found[task] for task in FIVE])
    six = mean([found[task] for task in SIX]) if "pathx" in found else None
    return Averages(five, six)


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


def lines_passed(accuracy: float, lines: Mapping[str, float], *, examples: int) -> list[str]:
    """Name the trivial lines that an accuracy is clearly past, lowest first.

    Args:
        accuracy: In percent.
        lines: Name → percent: a task's entry in `TRIVIAL`, or what its manifest measured.
        examples: Examples in the test set.
    """
    ordered = sorted(lines.items(), key=lambda item: item[1])
    return [
        name for name, line in ordered if escape_rate([accuracy], line, examples=examples).escaped
    ]
