"""Conditions against a reference: where the code departs, and where the weights do.

other code      the model with the reference's weights: ‖y − y'‖ / ‖y'‖ where it first departs
other weights   how much farther one weight moved than the others
"""

from __future__ import annotations

from typing import Any

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.not_measured import NotMeasured


def code(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find the first module that computes something else with the same weights."""
    return _departure(seen, "code", "with the reference's weights every module gives the same")


def weights(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find the weight that moved out of proportion."""
    return _departure(seen, "weights", "no weight moved out of proportion")


def _departure(seen: DepthProfile, kind: str, fine: str) -> Symptom | NotMeasured | None:
    found: dict[str, Any] | NotMeasured | None = seen.facts.get("reference", {}).get(kind)
    if found is None or isinstance(found, NotMeasured):
        return found
    text = found["text"] or fine
    return Symptom(found["size"], text, found["module"], found["component"])
