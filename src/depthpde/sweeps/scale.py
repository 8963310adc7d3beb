"""How large an experiment is: a smoke run, a CPU's evening, or a cluster's week."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from depthpde.sweeps.grid import bases

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

ARENA = ("listops", "text", "retrieval", "image", "pathfinder")
"""Long Range Arena's five tasks; the mini ones are called the same with ``-mini``."""


class Scale(StrEnum):
    """How large."""

    QUICK = "quick"
    """One mini task for a few updates: within three minutes, shows that everything works, answers
    nothing."""
    MINI = "mini"
    """Mini tasks with small models: minutes a run on one core."""
    FULL = "full"
    """The tasks themselves with the models of the `nystrom-2021` preset: hours a run on a GPU."""


def arena_tasks(scale: Scale) -> tuple[str, ...]:
    """Return the five tasks in this size; a smoke run takes the first alone."""
    if scale is Scale.QUICK:
        return (f"{ARENA[0]}-mini",)
    return ARENA if scale is Scale.FULL else tuple(f"{name}-mini" for name in ARENA)


def bases_of(
    scale: Scale, tasks: Sequence[str], model: Mapping[str, Any] | None = None
) -> dict[str, Preset]:
    """Return what the variants of an experiment start from, by task.

    Args:
        scale: How large.
        tasks: Their names.
        model: Settings of the model that differ from the preset's.
    """
    if scale is Scale.FULL:
        return bases("nystrom-2021", tasks, model=model)
    quick = {"updates": 20, "warmup": 2, "evaluate_every": 10, "log_every": 5}
    return bases("mini", tasks, model=model, training=quick if scale is Scale.QUICK else {})
