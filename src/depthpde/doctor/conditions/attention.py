"""Conditions of attention: what its scores, its heads and its mask show.

attention-logit growth   the largest |q·k| / √d of a head
attention sinks          the share of heads that rest on the first token
blind heads              the share of heads whose scores do not depend on content
tied heads               the share of heads that attend exactly as another one does
dead heads               the least that a head gives, against its block's mean
unusual attention        whether another rule explains the heads
attention scale          by how much the scores are larger than q·k / √d
mask within reach        the weight that a finite mask leaves on what it hides
"""

from __future__ import annotations

import math
import statistics

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.conditions.depth import SINK_SHARE, heads_of
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.not_measured import NotMeasured

BLIND = 1e-6
"""Largest score of a head that cannot tell one token from another."""
TIED = 1e-6
"""Largest difference of the weights of two heads that count as one."""


def logits(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the largest attention score."""
    heads = heads_of(seen, "attention.logit")
    if not heads:
        return _why(seen)
    block, head, value = max(heads, key=lambda each: each[2])
    return Symptom(value, f"largest |q·k|/√d is {value:.3g} ({block}, head {head})", block)


def sinks(seen: DepthProfile) -> Symptom | NotMeasured:
    """Count the heads that rest on the first token."""
    heads = heads_of(seen, "attention.sink")
    if not heads:
        return _why(seen)
    resting = [each for each in heads if each[2] > SINK_SHARE]
    share = len(resting) / len(heads)
    return Symptom(share, f"{len(resting)} of {len(heads)} heads rest on the first token")


def blind_heads(seen: DepthProfile) -> Symptom | NotMeasured:
    """Count the heads whose scores do not depend on content."""
    heads = heads_of(seen, "attention.logit")
    if not heads:
        return _why(seen)
    blind = [each for each in heads if each[2] < BLIND]
    if not blind:
        return Symptom(0.0, "every head's scores depend on content")
    block = blind[0][0]
    text = f"{len(blind)} of {len(heads)} heads score every token alike, first in {block}"
    return Symptom(len(blind) / len(heads), f"{text}: queries or keys are zero", block)


def tied_heads(seen: DepthProfile) -> Symptom | NotMeasured:
    """Count the heads that attend exactly as another head of their block."""
    heads = heads_of(seen, "attention.twin")
    blind = {each[:2] for each in heads_of(seen, "attention.logit") if each[2] < BLIND}
    heads = [each for each in heads if each[:2] not in blind]
    if not heads:
        if "attention.twin" in seen:
            return NotMeasured("one head a block, or none that sees")
        return _why(seen)
    tied = [each for each in heads if each[2] < TIED]
    if not tied:
        block, head, least = min(heads, key=lambda each: each[2])
        return Symptom(0.0, f"nearest pair differs by {least:.2g} ({block}, head {head})")
    text = f"{len(tied)} of {len(heads)} heads attend exactly as another, first in {tied[0][0]}"
    return Symptom(len(tied) / len(heads), text, tied[0][0])


def dead_heads(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the head that gives least."""
    heads = heads_of(seen, "attention.head_size")
    if not heads:
        return _why(seen)
    block, head, value = min(heads, key=lambda each: each[2])
    return Symptom(value, f"least: {block}, head {head} gives {value:.2g} of the mean head", block)


def scale(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find by how much the scores are larger than q·k / √d."""
    if "attention.scale" not in seen:
        return _why(seen)
    known = seen["attention.scale"].singles()
    block, value = max(known, key=lambda pair: abs(math.log(max(pair[1], 1e-9))))
    middle = statistics.median(each for _, each in known)
    text = f"scores are ×{middle:.3g} of q·k/√d" if middle != 1 else "scores are q·k/√d"
    if value != middle:
        text = f"scores of {block} are ×{value:.3g} of q·k/√d"
    return Symptom(value, text, "" if value == 1 else block)


def otherwise(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Tell which change explains heads that do not follow from queries and keys as usual."""
    if "attention.entropy" in seen:
        return Symptom(0.0, "the heads follow from queries, keys and values")
    found = seen.facts.get("otherwise")
    if found is None:
        return None
    text = f"{found['where']}: {found['text']}"
    return Symptom(1.0, text, found["where"], found["component"])


def mask_reach(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Find the weight that a finite mask leaves on what it hides."""
    if "attention.hidden" not in seen:
        return None
    known = seen["attention.hidden"].singles()
    if not known:
        return None
    block, value = max(known, key=lambda pair: pair[1])
    text = f"a hidden site still gets up to {value:.2g} of the weight ({block})"
    return Symptom(value, text if value > 0 else "a hidden site gets no weight", block)


def _why(seen: DepthProfile) -> NotMeasured:
    return NotMeasured(seen.missing.get("attention", "attention was not measured"))
