"""H2: does diffusion carry over to twice the resolution, because its time has units?

Trained on images of 14² and 16² pixels, read at 28² and 32² without any training. Half the distance
between pixels means four times the steps; the taps of a free convolution are put two pixels apart.
No positions: whatever knows a place would not fit the finer grid.

Took 2.1 core-hours up to its only look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

FINER = {"mnist-mini": "mnist", "image-mini": "image"}
"""Task → the same images at twice the resolution."""
TWICE = "accuracy at twice the resolution"
REACH = 4
NOTHING, STEPS, FREE, BOUNDED = "no positions", "diffusion, 4 steps", "free stencil", "bounded"


def _variant(label: str, words: str, layer: Mapping[str, Any] | None) -> Variant:
    placed = {} if layer is None else {"positions": ("after_embedding",), "layer": layer}
    return Variant(
        label,
        f"{words}, in the plane, no positions",
        model={"encoding": "none", "geometry": "plane"} | placed,
        run={"transfer": tuple(FINER.values())},
    )


VARIANTS = (
    _variant(NOTHING, "nothing placed", None),
    _variant(
        STEPS,
        "four explicit steps with a learned ratio per feature",
        {"kind": "diffusion", "steps": REACH},
    ),
    _variant(
        FREE,
        "a free convolution of the same reach that starts as the identity",
        {"kind": "learned_stencil", "steps": REACH, "start": "identity", "taps": "free"},
    ),
    _variant(
        BOUNDED,
        "the same taps from the heat kernel, divided by max(1, Σ|taps|)",
        {"kind": "learned_stencil", "steps": REACH, "start": "heat", "taps": "l1"},
    ),
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        return bases_of(scale, tasks[:1])
    return bases("mini", tasks, training={"updates": 1600, "evaluate_every": 400})


def _carries(variant: str, against: str, margin: float, words: str) -> PlannedContrast:
    return PlannedContrast(
        variant=variant, against=against, endpoint=TWICE, margin=margin, words=words
    )


PROTOCOL = StudyProtocol(
    name="resolution",
    question="Does diffusion carry over to twice the resolution, because its time has units?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(5e-4, 1e-3, 2e-3),
    endpoints=(TWICE, ACCURACY),
    gates=(
        BaselineGate(task="mnist-mini", endpoint=ACCURACY, least=20.0, words="twice chance"),
        BaselineGate(task="image-mini", endpoint=ACCURACY, least=13.0, words="chance by a third"),
    ),
    contrasts=(
        _carries(
            STEPS,
            FREE,
            2.0,
            "At twice the resolution diffusion is more than 2 points above a free convolution with "
            "its taps two pixels apart.",
        ),
        _carries(STEPS, NOTHING, 0.0, "It is above nothing placed there."),
        _carries(BOUNDED, FREE, 0.0, "The bounded stencil is above the free one there."),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; the papers' size of 5 points is judged by the interval",
)


EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: tuple(FINER),
    bases=_bases,
    fixed_tasks=True,
    seeds=dict(SIX_SEEDS) | {Scale.QUICK: 1},
    protocol=PROTOCOL,
    conclude=by_protocol(PROTOCOL),
)
