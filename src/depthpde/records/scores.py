"""Scores: what the finished runs of a grid reached, by variant, task and seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from depthpde.errors import check_one_of
from depthpde.records.evidence import Evidence
from depthpde.records.record import Grid, Record, State

Scores = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Variant → task → seed → number."""


class Endpoint(StrEnum):
    """What a run is measured by."""

    ACCURACY = "accuracy"
    """Test accuracy in percent: what the papers report."""
    LOSS = "loss"
    """Test loss in nats: far sharper on a few thousand examples."""


def read_scores(
    grid: Grid, records: Mapping[str, Record], endpoint: Endpoint | str = Endpoint.ACCURACY
) -> dict[str, dict[str, dict[int, float]]]:
    """Return what every finished run of a grid reached.

    A run that diverged until it had no test accuracy counts as the largest class, so that what
    breaks is never left out of a mean; it has no test loss and is left out there.

    Args:
        grid: Which runs, and what they are called.
        records: Run id → record.
        endpoint: Accuracy, or loss.
    """
    kind = check_one_of("endpoint", endpoint, Endpoint)
    found: dict[str, dict[str, dict[int, float]]] = {}
    for cell in grid.cells:
        record = records.get(cell.run)
        value = None if record is None else _score(record, kind)
        if value is not None and math.isfinite(value):
            found.setdefault(cell.variant, {}).setdefault(cell.task, {})[cell.seed] = value
    return found


def scores_of(
    evidence: Evidence, endpoint: Endpoint | str = Endpoint.ACCURACY
) -> dict[str, dict[str, dict[int, float]]]:
    """Return what the finished runs of some evidence reached; see `read_scores`.

    Args:
        evidence: The runs, such as a part that was selected.
        endpoint: Accuracy, or loss.
    """
    kind = check_one_of("endpoint", endpoint, Endpoint)
    found: dict[str, dict[str, dict[int, float]]] = {}
    for variant in evidence.variants:
        for task in evidence.tasks:
            runs = evidence.runs.get((task, variant), {})
            values = {seed: _score(run, kind) for seed, run in sorted(runs.items())}
            known = {s: v for s, v in values.items() if v is not None and math.isfinite(v)}
            if known:
                found.setdefault(variant, {})[task] = known
    return found


def read_curves(
    grid: Grid, records: Mapping[str, Record], endpoint: Endpoint | str = Endpoint.ACCURACY
) -> dict[int, dict[str, dict[str, dict[int, float]]]]:
    """Return the validation scores of a grid at each update that was looked at.

    Args:
        grid: Which runs.
        records: Run id → record.
        endpoint: Accuracy, or loss.

    Returns:
        Update → scores; tasks of other lengths appear at their own updates.
    """
    kind = check_one_of("endpoint", endpoint, Endpoint)
    found: dict[int, dict[str, dict[str, dict[int, float]]]] = {}
    for cell in grid.cells:
        record = records.get(cell.run)
        for look in () if record is None else record.validations():
            scores = found.setdefault(int(look["update"]), {})
            runs = scores.setdefault(cell.variant, {}).setdefault(cell.task, {})
            runs[cell.seed] = float(look[kind.value])
    return dict(sorted(found.items()))


def read_predictions(
    grid: Grid, records: Mapping[str, Record]
) -> dict[str, dict[str, dict[int, NDArray[np.uint8]]]]:
    """Return the class that every finished run of a grid predicts for each test example.

    Args:
        grid: Which runs.
        records: Run id → record.

    Returns:
        Variant → task → seed → classes, in the split's order; runs without are left out.
    """
    found: dict[str, dict[str, dict[int, NDArray[np.uint8]]]] = {}
    for cell in grid.cells:
        record = records.get(cell.run)
        classes = None if record is None else record.predictions()
        if classes is not None:
            found.setdefault(cell.variant, {}).setdefault(cell.task, {})[cell.seed] = classes
    return found


def epochs_seen(config: Mapping[str, object], examples: int) -> float:
    """Return how often a run saw each training example.

        updates · batch size · accumulate / examples

    Below 1 a model never sees an example twice, so that its train and test loss are alike and
    nothing about generalisation can be told.

    Args:
        config: A record's config.
        examples: In the training split.
    """
    if examples < 1:
        raise ValueError(f"`examples` must be at least 1, got {examples}; give the split's size")
    training = config.get("training")
    if not isinstance(training, Mapping):
        raise ValueError(
            f"`config` must hold the training of a run, got {training!r}; give record.config"
        )
    seen = int(training["updates"]) * int(training["batch_size"])
    return seen * int(training.get("accumulate", 1)) / examples


def _score(record: Record, kind: Endpoint) -> float | None:
    result = record.result or {}
    test = result.get("test")
    if isinstance(test, Mapping):
        value = test.get(kind.value)
        return float(value) if isinstance(value, int | float) else None
    trivial = result.get("trivial")
    diverged = result.get("status") == State.DIVERGED
    if kind is Endpoint.ACCURACY and diverged and isinstance(trivial, Mapping):
        return float(trivial["majority"]) if "majority" in trivial else None
    return None
