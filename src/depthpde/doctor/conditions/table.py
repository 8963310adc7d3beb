"""CONDITIONS: every condition by name, each the one function that reads it from a profile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from depthpde.doctor.conditions import (
    attention,
    depth,
    function,
    reference,
    stream,
    training,
    weights,
)
from depthpde.doctor.conditions.condition import Condition, Symptom
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.not_measured import NotMeasured
from depthpde.errors import shown

Measure = Callable[[DepthProfile], Symptom | NotMeasured | None]
"""A symptom, why there is none, or None where the condition does not concern the model."""

CONDITIONS: dict[str, Measure] = {
    Condition.NOT_FINITE: stream.not_finite,
    Condition.CODE: reference.code,
    Condition.WEIGHTS: reference.weights,
    Condition.EMPTY_WEIGHTS: weights.empty,
    Condition.FROZEN: weights.frozen,
    Condition.UNMOVED: training.unmoved,
    Condition.WIDTH: weights.output_width,
    Condition.NORM_SHIFT: weights.norm_shift,
    Condition.SIZES: weights.out_of_scale,
    Condition.REPEATED: weights.repeated_positions,
    Condition.ACTIVATION: weights.activation,
    Condition.UNREPEATABLE: function.unrepeatable,
    Condition.LEAK: depth.leak,
    Condition.BLOCK_SUM: stream.block_sum,
    Condition.PADDING: function.padding,
    Condition.CACHE: function.cache,
    Condition.ONE_SIDED: function.one_sided,
    Condition.SCALE: attention.scale,
    Condition.OTHERWISE: attention.otherwise,
    Condition.MASK_REACH: attention.mask_reach,
    Condition.DROPOUT: function.dropout,
    Condition.PRECISION: function.precision,
    Condition.MODES: function.modes,
    Condition.NORM_EPSILON: weights.norm_epsilon,
    Condition.LARGE_EPSILON: weights.large_epsilon,
    Condition.OWN_CLASS: reference.own_class,  # after what names the change more closely
    Condition.BLIND_HEADS: attention.blind_heads,
    Condition.TIED_HEADS: attention.tied_heads,
    Condition.DEAD_HEADS: attention.dead_heads,
    Condition.POSITIONS: function.positions,
    Condition.DIFFUSION: depth.diffusion,
    Condition.DRIFT: depth.drift,
    Condition.RANK: depth.rank,
    Condition.SMOOTHING: depth.smoothing,
    Condition.ENTROPY: depth.entropy,
    Condition.EXPLODING: depth.exploding,
    Condition.VANISHING: depth.vanishing,
    Condition.DEAD: depth.dead,
    Condition.NEURONS: weights.neurons,
    Condition.STREAM: stream.explosion,
    Condition.LOGITS: attention.logits,
    Condition.UNTRAINED: weights.untrained_head,
    Condition.OUTPUT: stream.output_drift,
    Condition.CONSTANT: stream.constant_output,
    Condition.REDUNDANT: stream.redundant,
    Condition.MASSIVE: stream.massive,
    Condition.SINKS: attention.sinks,
    Condition.UPDATES: training.updates,
}
"""Causes before what follows from them: so they stand in a diagnosis."""


def symptoms(
    profile: DepthProfile, *, entropy_floor: float = depth.ENTROPY_FLOOR
) -> dict[str, Symptom | NotMeasured]:
    """Read the sign of every condition, or why it could not be read, in the order of the table.

    Args:
        profile: What was measured.
        entropy_floor: Share of log n under which a head looks at one token.
    """
    seen = replace(profile, facts={"entropy_floor": entropy_floor, **profile.facts})
    found = {name: measure(seen) for name, measure in CONDITIONS.items()}
    found = {name: _cause_alone(seen, name, sign) for name, sign in found.items()}
    for name, sign in found.items():
        if not isinstance(sign, Symptom | NotMeasured | None):
            raise ValueError(
                f"the function of {name!r} must give a Symptom, a NotMeasured or None, got "
                f"{shown(sign)}; wrap a reason as dp.NotMeasured(reason)"
            )
    return {name: sign for name, sign in found.items() if sign is not None}


def _cause_alone(
    seen: DepthProfile, name: str, sign: Symptom | NotMeasured | None
) -> Symptom | NotMeasured | None:
    """Leave out what is not finite only because the first module that is not finite is not."""
    first = seen.facts.get("not_finite_module")
    if first is None or name == Condition.NOT_FINITE or not isinstance(sign, Symptom):
        return sign
    if math.isfinite(sign.value):
        return sign
    return NotMeasured(f"it follows from {first['module']}, whose output is not finite")
