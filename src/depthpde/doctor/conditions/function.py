"""Conditions that a few more passes show: what the function does not depend on, or should not.

position blindness      what moves when two tokens change places
one-sided encoder       whether a site of an encoder does not see what follows
padding leak            whether padding reaches real tokens
cache mismatch          whether decoding with a cache gives something else
unrepeatable            whether two equal calls in eval mode differ
train and eval differ   whether they do so without dropout
"""

from __future__ import annotations

import math

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.not_measured import NotMeasured

NOT_TRIED = NotMeasured("it was not requested")


def positions(seen: DepthProfile) -> Symptom | NotMeasured:
    """Tell whether the model sees the order of its tokens."""
    found = seen.facts.get("positions", NOT_TRIED)
    if isinstance(found, NotMeasured):
        return found
    if found < 1e-9:
        return Symptom(found, "two tokens change places and nothing else moves: order is not seen",
                       "embedding")  # fmt: skip
    return Symptom(found, f"two tokens change places and the others move by {found:.2g}")


def one_sided(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Tell whether an encoder sees in one direction only."""
    found = seen.facts.get("one_sided")
    if found is None or isinstance(found, NotMeasured):
        return found
    text = "a site does not see what follows" if found else "a site sees both directions"
    return Symptom(float(found), text, "attention" if found else "")


def padding(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Tell whether padding reaches real tokens."""
    found = seen.facts.get("padding")
    if found is None or isinstance(found, NotMeasured):
        return None
    if found["size"] == 0.0:
        return Symptom(0.0, "padding moves no real token")
    text = f"other padding moves real tokens by {found['size']:.2g}, from {found['where']} on"
    return Symptom(found["size"], text, found["where"])


def cache(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Tell whether decoding with a cache gives something else."""
    return _isolation(seen, "cache")


def modes(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Tell whether train and eval mode differ without dropout."""
    return _isolation(seen, "memory")


def unrepeatable(seen: DepthProfile) -> Symptom | NotMeasured:
    """Tell whether two equal calls differ."""
    found = seen.facts.get("repeats")
    if found is None:
        return NotMeasured("two equal calls were not compared")
    text = "two equal calls give the same" if found else "two equal calls in eval mode differ"
    return Symptom(0.0 if found else 1.0, text)


def dropout(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Tell whether dropout stands where none belongs, or has another rate than is declared."""
    found = seen.facts.get("dropout")
    if found is None:
        return None
    text = found["text"] or "dropout stands on terms and weights, at the rates that are declared"
    return Symptom(found["size"], text, found["where"], found["component"])


def precision(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Tell whether an operation has fewer digits than the weights."""
    if "low_precision" not in seen.facts:
        return None
    found = seen.facts["low_precision"]
    if found is None:
        return Symptom(0.0, "no operation has fewer digits than the weights")
    text = (
        f"{found['where']} computes in {found['format']} ({found['operation']}), the weights do not"
    )
    return Symptom(1.0, text, found["where"], found["component"])


def _isolation(seen: DepthProfile, question: str) -> Symptom | NotMeasured | None:
    found = seen.facts.get("isolation", {}).get(question)
    if found is None:
        return None
    if found["verdict"] == "does not apply":
        return None
    leak = found["verdict"] == "leak"
    value = max(found["size"], math.ulp(1.0)) if leak else 0.0
    return Symptom(value, found["text"], found["module"])
