"""The demo: four small models on generated ListOps, with nothing to download."""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.sweeps.grid import Plan, Variant, bases

NAME = "demo"
TASK = "listops-mini"
UPDATES = 500
"""Enough to leave the majority class behind, few enough for a coffee."""


def plan(*, seeds: int | Sequence[int] = 3, updates: int = UPDATES) -> Plan:
    """Return the runs of the demo.

    Args:
        seeds: How many, or which.
        updates: Of every run.
    """
    here = {"positions": ("after_embedding",)}
    diffusion = {"bound": 0.5, "initial_ratio": 0.25}
    training = {"updates": updates, "warmup": max(1, updates // 10), "evaluate_every": 100}
    return Plan(
        name=NAME,
        question="Does diffusion after the embedding help a small Transformer on ListOps?",
        variants=(
            Variant("baseline", "nothing placed"),
            Variant(
                "after embedding",
                "one explicit step of diffusion with a learned ratio per feature",
                model=here | {"layer": {"kind": "diffusion", **diffusion}},
            ),
            Variant(
                "multi-scale",
                "diffusion at three scales at once, weighted by what is learned",
                model=here | {"layer": "multiscale"},
            ),
            Variant(
                "depthwise conv",
                "the control: a convolution of width 3 that starts where diffusion starts",
                model=here
                | {"layer": {"kind": "depthwise_conv", "start": "blur", "initial_ratio": 0.25}},
            ),
        ),
        bases=bases("mini", [TASK], training=training),
        seeds=seeds,
    )
