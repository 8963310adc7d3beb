"""Conditions that the weights show by themselves, and those of single modules in one pass.

empty weights      the largest share of a matrix whose rows, columns or entries are void
frozen weights     the share of weights that cannot learn, or that no optimizer will find
dead neurons       the largest share of a feed-forward's units that no token wakes
norm epsilon       the largest share of ε in what a norm divides by
"""

from __future__ import annotations

from typing import Any

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.depth_profile import DepthProfile


def empty(seen: DepthProfile) -> Symptom | str:
    """Find the matrix with the largest void part."""
    if "weights" not in seen.facts:
        return "the weights were not inspected"
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


def frozen(seen: DepthProfile) -> Symptom | str:
    """Find weights that cannot learn beside siblings that can, or that are not registered."""
    found = seen.facts.get("frozen")
    if found is None:
        return "the weights were not inspected"
    if not found["names"]:
        return Symptom(0.0, "every weight of a block learns, or none does")
    count = len(found["names"])
    text = f"{found['names'][0]}{f' and {count - 1} more' * (count > 1)}: {found['why']}"
    return Symptom(found["value"], text, found["names"][0].rpartition(".")[0], found["component"])


def neurons(seen: DepthProfile) -> Symptom | str:
    """Find the feed-forward with most units that no token wakes."""
    if "units.dead" not in seen:
        return "no feed-forward of one hidden layer was seen"
    known = seen["units.dead"].singles()
    block, value = max(known, key=lambda pair: pair[1], default=("", 0.0))
    text = f"{value:.0%} of the units of {block} are zero for every token"
    return Symptom(value, text if value else "every unit is woken by some token", block)


def norm_epsilon(seen: DepthProfile) -> Symptom | str:
    """Find the norm that ε weighs most in."""
    found = seen.facts.get("norms")
    if not found:
        return "no norm with an ε was seen"
    name, share, epsilon = max(found, key=lambda each: each[1])
    text = f"ε = {epsilon:g} is {share:.2g} of what {name} divides by"
    return Symptom(share, text, name)
