"""Is a mix of scales better than one scale under the same bound?"""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.layers.multiscale import SCALES
from depthpde.models.position import Position
from depthpde.papers.placement import BASELINE, BOUND, DIFFUSION, START, WORDS
from depthpde.sweeps.grid import Plan, Variant
from depthpde.sweeps.scale import Scale, arena_tasks, bases_of

NAME = "multiscale"
BY_POSITION = "multiscale-positions"
QUESTION = "Is a mix of fast, medium and slow diffusion better than one scale?"
CONTROL = Variant(
    "fast, fixed",
    f"{SCALES['fast'].steps} steps of the same diffusion after the embedding, nothing learned",
    model={
        "positions": (Position.AFTER_EMBEDDING.value,),
        "layer": {"kind": "blur", "steps": SCALES["fast"].steps, "initial_ratio": START},
    },
)
"""Is the widest reach more than a wide blur? One of one step is among placement's controls."""


def plan(
    scale: Scale = Scale.MINI,
    *,
    seeds: int | Sequence[int] = 6,
    tasks: Sequence[str] | None = None,
) -> Plan:
    """Return the runs after the embedding on all tasks."""
    variants = [_single(name, Position.AFTER_EMBEDDING, name) for name in SCALES]
    mixes = [
        _mixed("mixed", Position.AFTER_EMBEDDING, gated=False),
        _mixed("mixed, gated", Position.AFTER_EMBEDDING, gated=True),
    ]
    return Plan(
        name=NAME,
        question=QUESTION,
        variants=(BASELINE, *variants, *mixes, CONTROL),
        bases=bases_of(scale, tasks or arena_tasks(scale)),
        seeds=seeds,
    )


def plan_by_position(
    scale: Scale = Scale.MINI,
    *,
    seeds: int | Sequence[int] = 6,
    tasks: Sequence[str] | None = None,
) -> Plan:
    """Return the runs at every position on ListOps."""
    variants = [BASELINE]
    for position, words in WORDS.items():
        variants += [_single(name, position, f"{words}, {name}") for name in SCALES]
        variants.append(_mixed(f"{words}, mixed", position, gated=False))
    return Plan(
        name=BY_POSITION,
        question=f"{QUESTION} At every position, on ListOps.",
        variants=variants,
        bases=bases_of(scale, tasks or arena_tasks(scale)[:1]),
        seeds=seeds,
    )


def _single(scale: str, position: Position, label: str) -> Variant:
    steps = SCALES[scale].steps
    more = {"steps": steps} if steps > 1 else {}  # one step is the layer's own default
    return Variant(
        label,
        f"{steps} step{'s' * (steps > 1)} of one diffusion, {WORDS[position]}",
        model={"positions": (position.value,), "layer": DIFFUSION | more},
    )


def _mixed(label: str, position: Position, *, gated: bool) -> Variant:
    weights = "weights from each site's content" if gated else "learned weights"
    return Variant(
        label,
        f"{', '.join(SCALES)} mixed with {weights}, {WORDS[position]}",
        model={
            "positions": (position.value,),
            "layer": {
                "kind": "multiscale",
                "scales": " ".join(SCALES),
                "gated": gated,
                "bound": BOUND,
                "initial_ratio": START,
            },
        },
    )
