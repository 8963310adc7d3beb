"""Branch or stream, explicit or implicit or exact, one ratio or many, by content or not?"""

from __future__ import annotations

from typing import Any

from depthpde.models.position import ROUTES, Position, Route
from depthpde.papers.claims import by_holm, effect_claim
from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.placement import BASELINE, DIFFUSION, SAME, WORDS
from depthpde.records.contrasts import difference
from depthpde.records.evidence import Evidence
from depthpde.records.findings import JudgedClaim
from depthpde.sweeps.grid import Variant
from depthpde.sweeps.scale import Scale

PLACES = (Position.AFTER_EMBEDDING, Position.BETWEEN_BLOCKS)
"""Where every way is tried."""
ROUTED = (Position.AFTER_ATTENTION, Position.AFTER_FFN)
"""Where diffusion can act on the branch or on the stream."""

LAYERS: dict[str, dict[str, Any]] = {
    "explicit": DIFFUSION,
    "backward Euler": DIFFUSION | {"scheme": "backward_euler"},
    "exact": DIFFUSION | {"scheme": "exact"},
    "one ratio": DIFFUSION | {"per": "scalar"},
    "adaptive": DIFFUSION | {"kind": "adaptive"},
}
"""The same start and bound in every row, so that only the way differs; the usual one first."""


def variants() -> list[Variant]:
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
        for place in ROUTED
        for route in Route
    ]
    return [*ways, *routes]


def claims(evidence: Evidence) -> list[JudgedClaim]:
    """Judge every other way against the one that everything else here uses."""
    usual, *others = LAYERS
    pairs = [(WORDS[place], usual, other) for place in PLACES for other in others]
    pairs += [(WORDS[place], Route.BRANCH.value, Route.STREAM.value) for place in ROUTED]
    return by_holm(
        [
            effect_claim(
                evidence,
                f"It does not matter how: {place}, {other} instead of {usual}.",
                difference(f"{place}, {other}", f"{place}, {usual}"),
                SAME,
                what=f"{place}, {other} − {usual}",
            )
            for place, usual, other in pairs
            if {f"{place}, {other}", f"{place}, {usual}"} <= set(evidence.variants)
        ]
    )


def _tasks(scale: Scale) -> tuple[str, ...]:
    if scale is Scale.QUICK:
        return ("listops-mini",)
    return ("text", "image") if scale is Scale.FULL else ("text-mini", "image-mini")


EXPERIMENT = Experiment(
    name="ways",
    question="Does it matter how diffusion is computed, and on what it acts?",
    variants=(BASELINE, *variants()),
    tasks=_tasks,
    conclude=by_records(claims),
)
