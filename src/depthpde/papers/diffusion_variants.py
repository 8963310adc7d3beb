"""Branch or stream, explicit or implicit or exact, one ratio or many, by content or not?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from depthpde.models.position import ROUTES, Position, Route
from depthpde.papers.placement import BASELINE, DIFFUSION, WORDS
from depthpde.sweeps.grid import Plan, Variant
from depthpde.sweeps.scale import Scale, bases_of

NAME = "ways"
QUESTION = "Does it matter how diffusion is computed, and on what it acts?"
PLACES = (Position.AFTER_EMBEDDING, Position.BETWEEN_BLOCKS)

LAYERS: dict[str, dict[str, Any]] = {
    "explicit": DIFFUSION,
    "backward Euler": DIFFUSION | {"scheme": "backward_euler"},
    "exact": DIFFUSION | {"scheme": "exact"},
    "one ratio": DIFFUSION | {"per": "scalar"},
    "adaptive": DIFFUSION | {"kind": "adaptive"},
}
"""The same start and bound in every row, so that only the way differs."""


def plan(
    scale: Scale = Scale.MINI,
    *,
    seeds: int | Sequence[int] = 6,
    tasks: Sequence[str] | None = None,
) -> Plan:
    """Return every way of diffusing at two positions, and both routes where there are two."""
    ways = [
        Variant(
            f"{WORDS[place]}, {name}",
            f"{name} diffusion, {WORDS[place]}",
            model={"positions": (place.value,), "layer": layer},
        )
        for place in PLACES
        for name, layer in LAYERS.items()
    ]
    routes = [
        Variant(
            f"{WORDS[place]}, {route.value}",
            f"diffusion {WORDS[place]} on the {route.value}",
            model={"positions": (place.value,), "layer": DIFFUSION}
            | ({} if route is ROUTES[place][0] else {"route": route.value}),
        )
        for place in (Position.AFTER_ATTENTION, Position.AFTER_FFN)
        for route in Route
    ]
    return Plan(
        name=NAME,
        question=QUESTION,
        variants=(BASELINE, *ways, *routes),
        bases=bases_of(scale, tasks or _tasks(scale)),
        seeds=seeds,
    )


def _tasks(scale: Scale) -> tuple[str, ...]:
    return ("text", "image") if scale is Scale.FULL else ("text-mini", "image-mini")
