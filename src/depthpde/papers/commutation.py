"""Does the commutator of diffusion and attention tell beforehand where diffusion will harm?

The runs are those of `placement`: each finished model's record tells its commutators and how far
its layers move the field, and the judge sets them against the change of accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.papers.placement import BASELINE, positions
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.scale import Scale, arena_tasks, bases_of

NAME = "commutation"
QUESTION = "Does the diffusion-attention commutator tell where diffusion will harm?"


def plan(
    scale: Scale = Scale.MINI,
    *,
    seeds: int | Sequence[int] = 6,
    tasks: Sequence[str] | None = None,
) -> Plan:
    """Return the baseline and the seven positions; no run that placement does not have."""
    return Plan(
        name=NAME,
        question=QUESTION,
        variants=(BASELINE, *positions()),
        bases=bases_of(scale, tasks or arena_tasks(scale)),
        seeds=seeds,
    )
