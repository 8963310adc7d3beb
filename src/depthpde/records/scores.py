"""Scores: what the finished runs of a grid reached, by variant, task and seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from depthpde.errors import check_one_of
from depthpde.records.evidence import Evidence
from depthpde.records.record import Record, State

Scores = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Variant → task → seed → number."""


class Endpoint(StrEnum):
    """What a run is measured by."""

    ACCURACY = "accuracy"
    """Test accuracy in percent: what the papers report."""
    LOSS = "loss"
    """Test loss in nats: far sharper on a few thousand examples."""


def scores_of(
    evidence: Evidence, endpoint: Endpoint | str = Endpoint.ACCURACY
) -> dict[str, dict[str, dict[int, float]]]:
    """Return what every finished run reached, read once.

    A run that diverged until it had no test accuracy counts as the largest class, so that what
    breaks is never left out of a mean; it has no test loss and is left out there.

    Args:
        evidence: The runs, such as a part that was selected.
        endpoint: Accuracy, or loss.
    """
    kind = check_one_of("endpoint", endpoint, Endpoint)
    if kind.value not in evidence.scored:
        evidence.scored[kind.value] = _read_scores(evidence, kind)
    return evidence.scored[kind.value]


def _read_scores(evidence: Evidence, kind: Endpoint) -> dict[str, dict[str, dict[int, float]]]:
    found: dict[str, dict[str, dict[int, float]]] = {}
    for variant in evidence.variants:
        for task in evidence.tasks:
            runs = evidence.runs.get((task, variant), {})
            values = {seed: _score(run, kind) for seed, run in sorted(runs.items())}
            known = {s: v for s, v in values.items() if v is not None and math.isfinite(v)}
            if known:
                found.setdefault(variant, {})[task] = known
    return found


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
