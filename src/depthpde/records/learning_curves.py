"""The course of training over several seeds: mean and band by update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from depthpde.records.record import METRICS, Broken, Record


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
    return join([read_validations(each) for each in records])


def join(runs: Sequence[Sequence[tuple[int, float]]]) -> LearningCurve:
    """Join curves of one kind; one without points is left out.

    Args:
        runs: For each run its updates and values, in order.
    """
    known = [dict(run) for run in runs if run]
    updates = sorted({update for run in known for update in run})
    # Before the first point of any run there is no mean over all of them.
    updates = [each for each in updates if all(each >= min(run) for run in known)]
    columns = [[run[max(u for u in run if u <= update)] for run in known] for update in updates]
    return LearningCurve(
        updates=tuple(updates),
        mean=tuple(sum(each) / len(each) for each in columns),
        low=tuple(min(each) for each in columns),
        high=tuple(max(each) for each in columns),
        n=len(known),
    )


def read_validations(record: Record) -> list[tuple[int, float]]:
    """Return updates and validation accuracies; none where a line cannot be read."""
    return _read(record)[0]


def unread_curve(record: Record) -> list[Broken]:
    """Return why a run's curve is left out; nothing where it is read, or there is none."""
    why = _read(record)[1]
    return [Broken(record.folder / METRICS, why)] if why else []


def _read(record: Record) -> tuple[list[tuple[int, float]], str]:
    """Return updates and validation accuracies, and why there are none."""
    try:
        looks = [(int(each["update"]), float(each["accuracy"])) for each in record.validations()]
    except (ValueError, OSError) as error:
        return [], str(error)
    except (KeyError, TypeError) as error:
        return [], f"every validation must tell an update and an accuracy, but {error!r}"
    return [(update, value) for update, value in sorted(looks) if math.isfinite(value)], ""
