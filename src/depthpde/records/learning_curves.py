"""The course of training over several seeds: mean and band by update."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

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
    parts = [tuple(zip(*run, strict=True)) for run in runs if run]
    if not parts:
        return LearningCurve(updates=(), mean=(), low=(), high=(), n=0)
    updates = parts[0][0]
    values: Sequence[Sequence[float]] = [each for _, each in parts]
    if any(each != updates for each, _ in parts) or any(a >= b for a, b in pairwise(updates)):
        updates, values = _aligned([run for run in runs if run])
    table = np.array(values, dtype=np.float64)  # [runs, updates]
    return LearningCurve(
        updates=tuple(updates),
        mean=tuple((table.sum(axis=0) / len(table)).tolist()),
        low=tuple(table.min(axis=0).tolist()),
        high=tuple(table.max(axis=0).tolist()),
        n=len(table),
    )


def _aligned(
    runs: Sequence[Sequence[tuple[int, float]]],
) -> tuple[tuple[int, ...], list[list[float]]]:
    """Return common updates, and the values that each of several different runs has there."""
    known = [sorted(dict(run).items()) for run in runs]
    # Before the first point of any run there is no mean over all of them.
    first = max(run[0][0] for run in known)
    updates = sorted({update for run in known for update, _ in run if update >= first})
    return tuple(updates), [list(_held(run, updates)) for run in known]


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
