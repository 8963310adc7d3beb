"""Scores: what the finished runs of a grid reached, by variant, task and seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from depthpde.errors import check_one_of
from depthpde.records.evidence import Evidence, score
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

    A run that broke counts as the largest class, so that what breaks is never left out of a mean;
    its test loss is out of every bound and left out.

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
    if kind is Endpoint.ACCURACY:
        return score(record)
    test = (record.result or {}).get("test")
    if record.state is State.DIVERGED or not isinstance(test, Mapping):
        return None
    value = test.get(kind.value)
    return float(value) if isinstance(value, int | float) else None
