"""What paper B calls signs of a missing stabilizer, as one number a run.

    largest gradient      log₁₀ max ‖g‖ over the logged updates, before clipping
    cosine to the input   of the field behind the last block with the field before the first

A run that broke counts as a gradient of 10⁴ at least and as a cosine of 0: what breaks is never
left out of a mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from depthpde.records.evidence import Evidence, broke
from depthpde.records.probes import read_probe
from depthpde.records.protocols.endpoints import COSINE_TO_INPUT, LARGEST_GRADIENT
from depthpde.records.record import Record
from depthpde.records.scores import Scores

LOST = 4.0
"""Decades of the largest gradient that a divergence counts as at least; what made a run diverge is
not among its logged updates."""


def sign_scores(evidence: Evidence, endpoint: str) -> Scores:
    """Return one sign for every finished run that has it.

    Args:
        evidence: The runs.
        endpoint: One of `SIGNS`.
    """
    read = _READERS[endpoint]
    found: dict[str, dict[str, dict[int, float]]] = {}
    for (task, variant), runs in evidence.runs.items():
        for seed, run in sorted(runs.items()):
            value = read(run)
            if value is not None and math.isfinite(value):
                found.setdefault(variant, {}).setdefault(task, {})[seed] = value
    return found


def _largest_gradient(run: Record) -> float | None:
    norms = [float(each["gradient_norm"]) for each in run.points()]
    finite = [each for each in norms if math.isfinite(each) and each > 0]
    decades = math.log10(max(finite)) if finite else None
    if broke(run):
        return max(LOST, decades or LOST)
    return decades


def _cosine(run: Record) -> float | None:
    if broke(run):
        return 0.0
    depth = read_probe(run).value.get("depth")
    values = depth.get("drift.cosine") if isinstance(depth, dict) else None
    return values[-1] if isinstance(values, list) and values else None


_READERS: dict[str, Callable[[Record], float | None]] = {
    LARGEST_GRADIENT: _largest_gradient,
    COSINE_TO_INPUT: _cosine,
}
