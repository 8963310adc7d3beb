"""Conditions that the weights show by themselves, and those of single modules in one pass.

empty weights      the largest share of a matrix whose rows, columns or entries are void
frozen weights     the share of weights that cannot learn, or that no optimizer will find
dead neurons       the largest share of a feed-forward's units that no token wakes
norm epsilon       the largest share of ε in what a norm divides by; of one above 1e-5 any share
unusual activation an odd, bounded or missing function between the feed-forward's matrices
norms moved as one how far a gain or shift is from its start, against its own spread
weights out of scale one part's matrices against the other's, in units of their spread
repeated positions the share of a table of positions that repeats the row before
other output width whether the head has as many outputs as the settings declare
untrained head     a bias of zeros on a head of blocks that have learned; worse at chance
"""

from __future__ import annotations

import math
from typing import Any

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.not_measured import NotMeasured

USUAL_EPSILON = 1e-5
"""The largest ε that layer norms commonly have."""


def empty(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the matrix with the largest void part."""
    if "weights" not in seen.facts:
        return NotMeasured("the weights were not inspected")
    found = [
        *seen.facts["weights"],
        *(_silent(name) for name in seen.facts.get("silent_norms", ())),
    ]
    if not found:
        return Symptom(0.0, "no matrix has zero rows, zero columns or equal entries")
    worst = max(found, key=lambda each: each["share"])
    more = f"; {len(found) - 1} more like it" * (len(found) > 1)
    text = f"{worst['name']}: {worst['what']}{more}"
    return Symptom(worst["share"], text, worst["module"], worst["component"])


def _silent(name: str) -> dict[str, Any]:
    what = "it gives the same for every token: its gain is zero"
    return {"name": name, "module": name, "component": "norm", "share": 1.0, "what": what}


def frozen(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find weights that cannot learn beside siblings that can, or that are not registered."""
    found = seen.facts.get("frozen")
    if found is None:
        return NotMeasured("the weights were not inspected")
    if not found["names"]:
        return Symptom(0.0, "every weight of a block learns, or none does")
    count = len(found["names"])
    text = f"{found['names'][0]}{f' and {count - 1} more' * (count > 1)}: {found['why']}"
    return Symptom(found["value"], text, found["names"][0].rpartition(".")[0], found["component"])


def neurons(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the feed-forward with most units that no token wakes."""
    if "units.dead" not in seen:
        return NotMeasured("no feed-forward of one hidden layer was seen")
    known = seen["units.dead"].singles()
    block, value = max(known, key=lambda pair: pair[1], default=("", 0.0))
    text = f"{value:.0%} of the units of {block} are zero for every token"
    return Symptom(value, text if value else "every unit is woken by some token", block)


def norm_epsilon(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the norm that ε weighs most in."""
    found = seen.facts.get("norms")
    if not found:
        return NotMeasured("no norm with an ε was seen")
    name, share, epsilon = max(found, key=lambda each: each[1])
    text = f"ε = {epsilon:g} is {share:.2g} of what {name} divides by"
    return Symptom(share, text, name)


def large_epsilon(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find the norm whose ε is larger than norms use, and what that does to it."""
    found = seen.facts.get("norms")
    if not found:
        return None
    beyond = [(share * (1 - min(1.0, USUAL_EPSILON / epsilon)), name, epsilon)
              for name, share, epsilon in found if epsilon > 0]  # fmt: skip
    value, name, epsilon = max(beyond, default=(0.0, "", 0.0))
    if value == 0.0:
        return Symptom(0.0, f"no ε is above {USUAL_EPSILON:g}")
    return Symptom(value, f"ε = {epsilon:g} makes {value:.2g} of what {name} divides by", name)


def activation(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find a feed-forward with a function that feed-forwards do not use."""
    found = seen.facts.get("activation")
    if found is None:
        return None
    if not found["unusual"]:
        return Symptom(0.0, f"feed-forwards use {found['name']}")
    what = "no function" if found["name"] == "none" else found["name"]
    text = f"the feed-forward of {found['where']} has {what} between its matrices"
    return Symptom(1.0, text, found["where"])


def norm_shift(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find the norm whose gain or shift was moved as one."""
    found = seen.facts.get("norm_shift")
    if found is None:
        return None
    if found["value"] == 0.0:
        return Symptom(0.0, "gains and shifts of the norms are near their start")
    text = (
        f"the {found['kind']} of {found['name']} is {found['middle']:.3g} throughout: "
        f"{found['value']:.2g} × its own spread from where it began"
    )
    return Symptom(found["value"], text, found["name"])


def out_of_scale(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find attention or feed-forward whose matrices grew or shrank without the other's."""
    found = seen.facts.get("start")
    if found is None:
        return None
    part = "attention" if found["component"] == "q, k, v" else found["component"]
    text = f"matrices of {part} are ×{found['times']:.2g} of their start"
    return Symptom(found["value"], f"{text}, {found['value']:.2g} × the spread from the others",
                   f"every {part}", found["component"])  # fmt: skip


def repeated_positions(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find positions that repeat the one before."""
    if "repeated_positions" not in seen.facts:
        return None
    found = seen.facts["repeated_positions"]
    if found is None:
        return Symptom(0.0, "no position repeats the one before")
    text = f"{found['count']} of {found['rows']} rows of {found['name']} repeat the row before"
    return Symptom(found["count"] / found["rows"], text, found["name"])


def output_width(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Compare the outputs of the head with what the settings declare."""
    found = seen.facts.get("head")
    if found is None or not found["declared"]:
        return None
    declared = " or ".join(map(str, found["declared"]))
    text = f"{found['name']} has {found['width']} outputs, the settings declare {declared}"
    return Symptom(float(found["width"] not in found["declared"]), text, found["name"])


def untrained_head(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find a head that has not learned while the blocks have; at chance it is ill."""
    found = seen.facts.get("head")
    if found is None:
        return None
    if not found["untrained"]:
        return Symptom(0.0, f"{found['name']} has learned, or nothing has")
    loss, chance = seen.facts.get("loss"), math.log(max(2, found["width"]))
    at_chance = loss is not None and loss > 0.9 * chance
    text = f"the bias of {found['name']} is exactly zero, those of the blocks are not"
    if at_chance:
        text += f"; the loss is {loss:.3g}, chance is {chance:.3g}"
    return Symptom(2.0 if at_chance else 1.0, text, found["name"])
