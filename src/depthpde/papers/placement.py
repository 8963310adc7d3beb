"""Where does diffusion help, by how much, and is it more than any local mixing?

The seven positions, learned placement (all seven at once, each starting as the identity: the
ratios say where diffusion wants to be), and what diffusion must be compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.models.position import Position
from depthpde.sweeps.grid import Plan, Variant
from depthpde.sweeps.scale import Scale, arena_tasks, bases_of

NAME = "placement"
QUESTION = "Where does diffusion help, by how much, and is it more than any local mixing?"
BOUND, START = 0.5, 0.25
"""The papers' own bound on the ratio, and the middle of it to start from."""
DIFFUSION = {"kind": "diffusion", "bound": BOUND, "initial_ratio": START}
WORDS = {position: position.value.replace("_", " ") for position in Position}


def plan(
    scale: Scale = Scale.MINI,
    *,
    seeds: int | Sequence[int] = 6,
    tasks: Sequence[str] | None = None,
) -> Plan:
    """Return the runs that answer the question."""
    return Plan(
        name=NAME,
        question=QUESTION,
        variants=(BASELINE, *positions(), LEARNED, *CONTROLS),
        bases=bases_of(scale, tasks or arena_tasks(scale)),
        seeds=seeds,
    )


BASELINE = Variant("baseline", "nothing placed")


def positions() -> list[Variant]:
    """Return one-step diffusion at each of the seven positions alone."""
    return [
        Variant(
            words,
            f"one explicit step with a learned ratio per feature, {words}",
            model={"positions": (position.value,), "layer": DIFFUSION},
        )
        for position, words in WORDS.items()
    ]


LEARNED = Variant(
    "all seven, learned",
    "diffusion at all seven positions, each starting as the identity: the ratios learn the place",
    model={
        "positions": tuple(position.value for position in Position),
        "layer": DIFFUSION | {"initial_ratio": 0.0},
    },
)

CONTROLS = (
    Variant(
        "conv from identity",
        "depthwise convolution of width 3 after the embedding, started as the identity",
        model={
            "positions": ("after_embedding",),
            "layer": {"kind": "depthwise_conv", "start": "identity"},
        },
    ),
    Variant(
        "conv from blur",
        "the same convolution, started at the stencil that diffusion starts at",
        model={
            "positions": ("after_embedding",),
            "layer": {"kind": "depthwise_conv", "start": "blur", "initial_ratio": START},
        },
    ),
    Variant(
        "fixed blur",
        "diffusion with that ratio after the embedding, nothing learned",
        model={
            "positions": ("after_embedding",),
            "layer": {"kind": "blur", "initial_ratio": START},
        },
    ),
    Variant(
        "rotary", "nothing placed, rotary instead of learned sites", model={"encoding": "rotary"}
    ),
)
"""What diffusion must be compared with."""
