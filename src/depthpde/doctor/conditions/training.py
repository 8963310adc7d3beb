"""Conditions that show in updates alone.

weights that never move   the share of learning weights that no update changes
update ratio              the largest ‖Δw‖ / ‖w‖ of a block in one update
"""

from __future__ import annotations

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.not_measured import NotMeasured


def unmoved(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find weights that should learn and do not."""
    found = seen.facts.get("unmoved")
    if found is None or isinstance(found, NotMeasured):
        return found
    if not found["names"]:
        return Symptom(0.0, f"every weight moved within {found['updates']} updates")
    count = len(found["names"])
    text = f"{found['names'][0]}{f' and {count - 1} more' * (count > 1)} did not move"
    return Symptom(found["share"], f"{text} in {found['updates']} updates",
                   found["names"][0].rpartition(".")[0], found["component"])  # fmt: skip


def updates(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find the part whose updates are largest against its weights."""
    if "updates.ratio" not in seen:
        return None
    known = seen["updates.ratio"].singles()
    if not known:
        return NotMeasured("no update was seen")
    part, value = max(known, key=lambda pair: pair[1])
    return Symptom(value, f"an update changes {part} by {value:.2g} of its size", part)
