"""Conditions against a reference: where the code departs, and where the weights do.

other code      the model with the reference's weights: ‖y − y'‖ / ‖y'‖ where it first departs
other weights   how much farther one weight moved than the others
its class       the model against a new one of its class and settings, with the same weights
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


def own_class(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find the first module that computes something else than the model's class does."""
    found = seen.facts.get("own_class")
    if isinstance(found, NotMeasured):
        return None  # a model that was extended has no class to be compared with
    return _symptom(found, "a new model of its class gives the same with these weights")


def _departure(seen: DepthProfile, kind: str, fine: str) -> Symptom | NotMeasured | None:
    return _symptom(seen.facts.get("reference", {}).get(kind), fine)


def _symptom(found: dict[str, Any] | NotMeasured | None, fine: str) -> Symptom | NotMeasured | None:
    if found is None or isinstance(found, NotMeasured):
        return found
    text = found["text"] or fine
    return Symptom(found["size"], text, found["module"], found["component"])
