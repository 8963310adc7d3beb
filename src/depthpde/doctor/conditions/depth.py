"""Conditions of a network's depth-dynamics: one function each, from a profile to a symptom.

representational drift   the least likeness of the stream to itself, one block to the next
rank collapse            what is left of the differences between tokens, ‖X − 1x̄ᵀ‖ / ‖X‖
over-smoothing           how rough the field still is, against its input
entropy collapse         the share of heads that look at one token
exploding gradients      the largest gradient on the stream, against the last block's
vanishing gradients      the smallest one
unstable diffusion       the least CFL margin of a diffusion layer
causal leak              how many modules show a site its future
dead layers              the least that a term adds, against the stream
"""

from __future__ import annotations

import math
import statistics

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.depth_profile import DepthProfile, DepthSeries, numbers
from depthpde.doctor.not_measured import NotMeasured

CONSTANT = "every sequence of the input is one token again and again; give one that varies"
MOST_NAMED = 4
"""Heads that are named one by one; more are counted."""
ENTROPY_FLOOR = 0.05
"""Share of log n under which a head looks at one token."""
SINK_SHARE = 0.8
"""Mean weight on the first token from which on a head rests there."""


def drift(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the median likeness of a block's output to its input."""
    whole = seen["drift.centred_cosine"]
    steps = sorted((value, label) for label, value in seen["drift.step_centred_cosine"].singles())
    if not steps:
        return NotMeasured("no block passes on a field that varies and is finite")
    middle = statistics.median(value for value, _ in steps)
    least, where = steps[0]
    jumps = middle > 0.3 and least < 0.5 * middle
    way = f"with a jump at {where}" if jumps else "smoothly"
    known = [value for _, value in whole.singles()]
    first, last = known[min(1, len(known) - 1)], known[-1]
    course = f"{'falls' if last <= first else 'goes'} {_cosine(first)} → {_cosine(last)} {way}"
    if len(known) < 3:  # the input itself, and one block
        course = f"{_cosine(last)} at {whole.singles()[-1][0]}"
    return Symptom(middle, f"cosine to input {course}{_random(whole)}", where=where)


def rank(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the least difference between tokens."""
    if seen.facts.get("constant_input"):
        return NotMeasured(CONSTANT)
    if seen.tokens <= seen.sequences:
        return NotMeasured("sequences of one token have no rank to lose")
    known = seen["rank.residual"].singles()
    if not known:
        return NotMeasured("the field is not finite")
    where, value = min(known, key=lambda pair: pair[1])
    text = f"tokens differ by {value:.2g} of their size at {where}"
    pooled = seen["rank.effective"].singles() if "rank.effective" in seen else []
    if pooled:  # one sequence that is not finite leaves none
        last, directions = pooled[-1]
        dim = seen.facts["dim"]
        text = f"effective rank {directions:.0f} of {dim} at {last}; {text}"
    return Symptom(value, text, where=where)


def smoothing(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find how rough the field still is, against its input."""
    if seen.facts.get("constant_input"):
        return NotMeasured(CONSTANT)
    known = seen["energy.smoothness"].singles()
    if len(known) < 2 or known[0][0] != "embedding":
        return NotMeasured("the field does not vary along its sequences")
    first = known[0][1]
    where, least = min(known[1:], key=lambda pair: pair[1])
    text = f"roughness {first:.2f} at the input, {least:.2f} at {where} (1: neighbours unrelated)"
    return Symptom(least / first, text, where=where)


def entropy(seen: DepthProfile) -> Symptom | NotMeasured:
    """Count the heads that look at one token; those that rest on the first one are sinks."""
    if "attention.entropy" not in seen:
        return NotMeasured(seen.missing.get("attention", "attention was not requested"))
    floor = seen.facts.get("entropy_floor", ENTROPY_FLOOR)
    resting = {(block, head) for block, head, share in heads_of(seen, "attention.sink")
               if share > SINK_SHARE}  # fmt: skip
    heads = heads_of(seen, "attention.entropy")
    if not heads:
        return NotMeasured("no site has a choice of what to look at")
    low = [each for each in heads if each[2] < floor and each[:2] not in resting]
    if not low:
        block, head, least = min(heads, key=lambda each: each[2])
        return Symptom(0.0, f"least {least:.2f} of log n ({block}, head {head})")
    blocks = [block for block, _, _ in low]
    worst = max(blocks, key=blocks.count)
    return Symptom(len(low) / len(heads), _blind_heads(low, len(heads)), where=worst)


def heads_of(seen: DepthProfile, name: str) -> list[tuple[str, int, float]]:
    """List block, head from 1 and number of a measure that has one a head."""
    if name not in seen:
        return []
    return [
        (block, head, value)
        for block, values in seen[name]
        for head, value in enumerate(numbers(values), start=1)
        if math.isfinite(value)
    ]


def _blind_heads(low: list[tuple[str, int, float]], count: int) -> str:
    """Name the heads that look at one token, or count them where they are many."""
    if len(low) > MOST_NAMED:
        return f"{len(low)} of {count} heads near zero: they look at one token"
    by_block: dict[str, list[str]] = {}
    for block, head, _ in low:
        by_block.setdefault(block, []).append(str(head))
    named = [
        f"{block}, head{'s' * (len(heads) > 1)} {' and '.join(heads)}"
        for block, heads in by_block.items()
    ]
    they = "they look" if len(low) > 1 else "it looks"
    size = max(each[2] for each in low)
    return f"{'; '.join(named)} near zero ({size:.2f} of log n): {they} at one token"


def exploding(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the largest gradient on the stream, against the last block's."""
    return _gradient(seen, largest=True)


def vanishing(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the smallest gradient on the stream, against the last block's."""
    return _gradient(seen, largest=False)


def _gradient(seen: DepthProfile, *, largest: bool) -> Symptom | NotMeasured:
    depth = seen.facts.get("not_finite")
    if depth is not None:
        if largest:
            where = "the embedding" if depth == 0 else f"block {depth}"
            return Symptom(math.inf, f"the field is not finite at {where}", where)
        return NotMeasured("the field is not finite")
    if "gradient.amplification" not in seen:
        return NotMeasured(seen.missing["gradient"])
    series = seen["gradient.amplification"]
    if any(not math.isfinite(each) for value in series.values for each in numbers(value)):
        stream = seen["gradient.stream"]
        if all(math.isfinite(each) for value in stream.values for each in numbers(value)):
            return NotMeasured("no gradient reaches the last block")
        if largest:
            return Symptom(math.inf, "not finite")
        return NotMeasured("the gradients are not finite")
    values = [float(each) for value in series.values for each in numbers(value)]
    value = max(values) if largest else min(values)
    where = series.labels[values.index(value)]
    verb = "grow" if values[0] >= 1 else "shrink"
    text = f"{verb} ×{values[0]:.2g} from the last block to the embedding"
    if value not in (values[0], 1.0):
        text += f" (×{value:.2g} at {where})"
    return Symptom(value, text, where=where)


def diffusion(seen: DepthProfile) -> Symptom | None:
    """Find the least CFL margin."""
    if "energy.cfl_margin" not in seen:
        return None
    series = seen["energy.cfl_margin"]
    pairs = [(value, label) for label, value in series if isinstance(value, float)]
    value, where = min(pairs)
    if value < 0:
        return Symptom(
            value, f"{where} is beyond its bound (margin {value:.2f}): it amplifies", where
        )
    layers = "layer" if len(pairs) == 1 else "layers"
    return Symptom(value, f"least CFL margin {value:.2f} of {len(pairs)} {layers}")


def leak(seen: DepthProfile) -> Symptom | NotMeasured | None:
    """Tell whether a site sees its future."""
    if not seen.causal:
        return None
    if "causality" in seen.missing:
        return NotMeasured(seen.missing["causality"])
    if "causality" not in seen.facts:
        return NotMeasured("it was not requested")
    leak = seen.facts["leak"]
    if not leak:
        return Symptom(0.0, "no site sees its future")
    return Symptom(1.0, leak, seen.facts.get("leak_module", ""))


def dead(seen: DepthProfile) -> Symptom | NotMeasured:
    """Find the term that adds least."""
    kinds = {"attention": "attention", "ffn": "feed-forward"}
    if seen.sequences < 2:  # wide attention adds the same to every token of one sequence
        del kinds["attention"]
    terms = [
        (value, f"{words} of {label}")
        for name, words in kinds.items()
        if f"drift.{name}_share" in seen
        for label, value in seen[f"drift.{name}_share"].singles()
    ]
    if not terms:
        return NotMeasured("no term adds anything to a field that varies")
    value, where = min(terms)
    return Symptom(value, f"least: {where} adds {value:.2g} of what the stream varies by", where)


def _random(series: DepthSeries) -> str:
    if series.baseline is None:
        return ""
    known = [each for value in series.baseline for each in numbers(value) if math.isfinite(each)]
    return f" (random network: {_cosine(known[-1])})" if known else ""


def _cosine(value: float) -> str:
    return f"{value + 0.0 if abs(value) >= 0.005 else 0.0:.2f}"
