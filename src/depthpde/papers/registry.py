"""QUESTIONS: every experiment that is a grid of training runs, by name; and those that are more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from depthpde.papers import (
    architectures,
    commutation,
    depth_limit,
    diffusion_variants,
    discretization,
    multiscale,
    placement,
    positional,
    stabilization,
)
from depthpde.papers.experiment import Experiment
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.scale import Scale


class Planner(Protocol):
    """Makes the plan of one experiment."""

    def __call__(
        self,
        scale: Scale = Scale.MINI,
        *,
        seeds: int | Sequence[int] = 6,
        tasks: Sequence[str] | None = None,
    ) -> Plan:
        """Return the plan.

        Args:
            scale: How large.
            seeds: How many, or which.
            tasks: Other tasks than the experiment's own.
        """


QUESTIONS: dict[str, Planner] = {
    placement.NAME: placement.plan,
    multiscale.NAME: multiscale.plan,
    multiscale.BY_POSITION: multiscale.plan_by_position,
    positional.NAME: positional.plan,
    diffusion_variants.NAME: diffusion_variants.plan,
    commutation.NAME: commutation.plan,
}
"""Name → the plan that answers it."""

REPRODUCTIONS: dict[str, Experiment] = {
    stabilization.NAME: stabilization.reproduce,
    discretization.NAME: discretization.reproduce,
    depth_limit.NAME: depth_limit.reproduce,
    architectures.NAME: architectures.reproduce,
}
"""Name → the plan whose runs are measured further, and what is made of them."""
