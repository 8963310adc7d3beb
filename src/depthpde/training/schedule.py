"""Learning-rate schedules: pure functions of the update number."""

from __future__ import annotations

import math
from enum import StrEnum


class Schedule(StrEnum):
    """How the learning rate falls after the warm-up."""

    COSINE = "cosine"
    """Half a cosine down to the floor."""
    LINEAR = "linear"
    """A line down to the floor."""
    RSQRT = "rsqrt"
    """√(warmup / update), without end and without a floor."""
    CONSTANT = "constant"
    """It does not fall."""


def rate(schedule: Schedule, update: int, *, updates: int, warmup: int, floor: float) -> float:
    """Return what multiplies the learning rate at an update, counted from 0.

        update < warmup     (update + 1) / warmup
        cosine              floor + (1 − floor) (1 + cos πs) / 2,    s = share of the way after it
        linear              1 − (1 − floor) s
        rsqrt               √(w / max(w, update + 1)),               w = max(1, warmup)

    In (0, 1] at every update before `updates` while floor > 0 or the schedule is rsqrt or
    constant; the peak 1 is at the end of the warm-up.

    Args:
        schedule: What happens after the warm-up.
        update: The update about to be made, from 0.
        updates: Updates of the whole run.
        warmup: Updates of linear rise, less than `updates`.
        floor: Share of the peak that is left at the end.
    """
    if update < warmup:
        return (update + 1) / warmup
    share = min(1.0, (update - warmup) / (updates - warmup))
    if schedule is Schedule.COSINE:
        return floor + (1 - floor) * (1 + math.cos(math.pi * share)) / 2
    if schedule is Schedule.LINEAR:
        return 1 - (1 - floor) * share
    if schedule is Schedule.RSQRT:
        peak = max(1, warmup)
        return math.sqrt(peak / max(peak, update + 1))
    return 1.0
