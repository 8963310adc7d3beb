"""Start: the sizes of a model's matrices against those of its own class as it starts.

    r = log(rms w / rms w₀)         of every matrix of a block, w₀ of a model made anew
    |median r of one part − of the other| / spread of r within the parts

A model that learned has parts that grew together, or apart by about as much as the matrices
within one part differ. A part that was scaled stands out; in a model that learned for long the
spread is large and nothing does. Only where the class can be made anew from its settings.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from depthpde.doctor.model_map import ModelMap

FLOOR = 0.05
"""Least spread of the logs that counts: five per cent."""


def start_facts(body: ModelMap, again: nn.Module) -> dict[str, Any] | None:
    """Return how far the sizes of attention's and the feed-forward's matrices are apart.

    Args:
        body: The model.
        again: A new model of its class and settings.
    """
    fresh = {name: weight.detach() for name, weight in again.named_parameters()}
    logs: dict[str, list[float]] = {"q, k, v": [], "feed-forward": []}
    names = {weight.data_ptr(): name for name, weight in body.model.named_parameters()}
    for k in range(len(body.blocks)):
        parts: dict[str, Sequence[Tensor | None]] = {
            "q, k, v": [body.projection(k, part) for part in ("query", "key", "value", "out")],
            "feed-forward": body.reaction_weights(k),
        }
        for part, weights in parts.items():
            for weight in weights:
                name = None if weight is None else names.get(weight.data_ptr())
                start = fresh.get(name) if name else None
                if start is not None and weight is not None:
                    ratio = _rms(weight) / max(_rms(start), 1e-30)
                    logs[part] += [math.log(ratio)] if 0 < ratio < 1e6 else []
    if any(len(each) < 2 for each in logs.values()):
        return None
    middle = {part: statistics.median(each) for part, each in logs.items()}
    spread = statistics.median(
        abs(value - middle[part]) for part, each in logs.items() for value in each
    )
    part = max(middle, key=lambda each: abs(middle[each]))
    gap = abs(middle["q, k, v"] - middle["feed-forward"])
    return {
        "value": gap / max(1.4826 * spread, FLOOR),
        "component": part,
        "times": math.exp(middle[part]),
    }


def _rms(weight: Tensor) -> float:
    return float(weight.detach().float().square().mean().sqrt())
