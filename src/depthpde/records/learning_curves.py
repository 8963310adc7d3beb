"""The course of training over several seeds: mean and band by update."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from depthpde.records.record import METRICS, Broken, Reading, Record


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningCurve:
    """One curve for several seeds."""

    updates: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    """The worst seed at each update."""
    high: tuple[float, ...]
    """The best seed."""
    n: int
    """Seeds that have a curve."""


def validation_curve(records: Sequence[Record]) -> LearningCurve:
    """Join the validation accuracies of several runs.

    A run that ended early keeps its last value, as its model does.
    """
    return join([read_validations(each).value for each in records])


def join(runs: Sequence[Sequence[tuple[int, float]]]) -> LearningCurve:
    """Join curves of one kind; one without points is left out.

    Args:
        runs: For each run its updates and values, in order.
    """
    known = [sorted(dict(run).items()) for run in runs if run]
    updates = sorted({update for run in known for update, _ in run})
    # Before the first point of any run there is no mean over all of them.
    first = max((run[0][0] for run in known), default=0)
    updates = [each for each in updates if each >= first]
    alike = all(len(run) == len(updates) for run in known)  # then every run has a value at each
    held = ([value for _, value in run] if alike else _held(run, updates) for run in known)
    columns = list(zip(*held, strict=True))
    return LearningCurve(
        updates=tuple(updates),
        mean=tuple(sum(each) / len(each) for each in columns),
        low=tuple(min(each) for each in columns),
        high=tuple(max(each) for each in columns),
        n=len(known),
    )


def _held(run: Sequence[tuple[int, float]], updates: Sequence[int]) -> Iterator[float]:
    """Give the last value of a run up to each of some updates; both are sorted."""
    place = 0
    for update in updates:
        while place + 1 < len(run) and run[place + 1][0] <= update:
            place += 1
        yield run[place][1]


def read_validations(record: Record) -> Reading[list[tuple[int, float]]]:
    """Return updates and validation accuracies, parsed once; none where a line is broken."""
    return record.keep(METRICS, lambda: parse_validations(record))


def parse_validations(record: Record) -> Reading[list[tuple[int, float]]]:
    """Read updates and validation accuracies from the run's file."""
    try:
        looks = [(int(each["update"]), float(each["accuracy"])) for each in record.validations()]
    except (ValueError, OSError) as error:
        return Reading([], Broken(record.folder / METRICS, str(error)))
    except (KeyError, TypeError) as error:
        why = f"every validation must tell an update and an accuracy, but {error!r}"
        return Reading([], Broken(record.folder / METRICS, why))
    return Reading([(update, value) for update, value in sorted(looks) if math.isfinite(value)])
