"""Conditions of the stream: its size, its largest numbers, its end.

not finite            the largest number on the way, against the largest its format holds
stream explosion      by how much a block in the middle multiplies the size of the stream
massive activations   the largest |u| against the median, over the middle half of the depth
other block sum       what a block hands on, against its input and its terms, or its last norm
redundant blocks      the least that a block changes, ‖u_l − u_{l−1}‖ / ‖u_{l−1}‖
output-logit drift    the root mean square of the logits
constant output       how much the output differs between inputs
"""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.not_measured import NotMeasured

ROUNDING = 1e-4
"""A relative difference of float32 that sums in another order make."""


def not_finite(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the first module that gives a number that is none, or how far that is."""
    first = seen.facts.get("not_finite_module")
    if first is not None:
        text = f"{first['module']} ({first['kind']}) is the first to give what is no number; its "
        if math.isfinite(first["input"]):
            text += f"inputs reach {first['input']:.3g}, "
        else:
            text += "inputs are not finite and no module made them: look at the batch; "
        text += f"{seen.facts['dtype']} holds {_most(seen):.3g}"
        return Symptom(math.inf, text, first["module"])
    if "energy.peak" not in seen or "format_max" not in seen.facts:
        return NotMeasured("the size of the stream was not measured")
    block, peak = max(seen["energy.peak"].singles(), key=lambda p: p[1], default=("", math.nan))
    share = peak / _most(seen)
    text = f"largest |u| is {peak:.3g} at {block}, {seen.facts['dtype']} holds {_most(seen):.3g}"
    return Symptom(share, text, block)


def explosion(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the growth of the stream by block: the median, the first block left out."""
    sizes = [value for _, value in seen["energy.size"].singles()] if "energy.size" in seen else []
    if len(sizes) < 4 or min(sizes) <= 0:
        return NotMeasured("three blocks or more are needed to tell growth by depth")
    steps = [b / a for a, b in pairwise(sizes[1:])]
    growth = statistics.median_low(steps)
    worst = max(range(len(steps)), key=steps.__getitem__)
    text = f"a block multiplies the stream by {growth:.2g}; {sizes[0]:.2g} → {sizes[-1]:.2g} in all"
    return Symptom(growth, text, f"block {worst + 2}")


def massive(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find how much the largest activation stands out in the middle half of the depth."""
    if "energy.massive" not in seen:
        return NotMeasured("the largest activations were not measured")
    known = seen["energy.massive"].singles()
    quarter = len(known) // 4
    middle = known[quarter : len(known) - quarter]
    if not middle:
        return NotMeasured("the field is not finite")
    block, value = min(middle, key=lambda pair: pair[1])
    channels = seen.facts.get("massive_channels", 0)
    text = f"largest |u| is {value:.3g} × the median through the middle of the depth"
    return Symptom(value, text + f", in {channels} channels" * bool(channels), block)


def block_sum(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find the block that hands on something else than u + A + F, or than its last norm gives."""
    found = seen.facts.get("sum")
    if found is None:
        return None
    if found["gap"] < ROUNDING:
        return Symptom(found["gap"], "every block hands on its input and its terms")
    scaled = abs(found["times"] - 1.0) > ROUNDING
    what = f"its input ×{found['times']:.3g}" if scaled else "something else than its terms make"
    text = f"{found['where']} hands on {what}, off by {found['gap']:.2g} of the stream"
    return Symptom(found["gap"], text, found["where"])


def redundant(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the block that changes least."""
    known = seen["drift.displacement"].singles() if "drift.displacement" in seen else []
    if not known:
        return NotMeasured("no block passes on a field that is finite")
    block, value = min(known, key=lambda pair: pair[1])
    return Symptom(value, f"{block} changes the stream by {value:.2g} of its size", block)


def output_drift(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the size of the logits."""
    if "logits" not in seen.facts:
        return NotMeasured("the output is no tensor of logits")
    value = seen.facts["logits"]["size"]
    return Symptom(value, f"logits have a root mean square of {value:.3g}", "output")


def constant_output(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find how much the output differs between inputs."""
    if "logits" not in seen.facts:
        return NotMeasured("the output is no tensor of logits")
    if seen.facts.get("constant_input") or seen.tokens < 2:
        return NotMeasured("the input does not vary")
    if not math.isfinite(seen.facts["logits"]["size"]):
        return NotMeasured("the output is not finite")
    value = seen.facts["logits"]["spread"]
    return Symptom(value, f"outputs of different inputs differ by {value:.2g} of their size",
                   "output")  # fmt: skip


def _most(seen: DepthProfile) -> float:
    return float(seen.facts.get("format_max", math.inf))
