"""H1: does a smoothing that cannot amplify keep more under noise than a free convolution?

|H(ω)| ≤ 1 for every parameter, and sixteen steps keep a tenth of the power of white noise. All
models are trained clean; the test split is read again under noise, the same for every model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.confirmatory.stencil import (
    BOUNDED,
    FREE,
    FREE_FROM_IDENTITY,
    ROTARY,
    STEPS,
)
from depthpde.papers.confirmatory.stencil import VARIANTS as STENCILS
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.records.protocols.endpoints import ACCURACY, CORRUPTED
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASKS = ("mnist-mini", "image-mini", "text-mini")
LEVELS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
"""Standard deviation as a share of the grey scale; share of bytes replaced."""
NARROW = "free, width 3"
VARIANTS = tuple(
    replace(each, run={"corruption": LEVELS})
    for each in (
        *STENCILS,
        Variant(
            NARROW,
            "a free convolution of width 3 that starts as the identity, after the embedding",
            model={
                "positions": ("after_embedding",),
                "layer": {
                    "kind": "learned_stencil",
                    "steps": 1,
                    "start": "identity",
                    "taps": "free",
                },
            },
        ),
    )
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        small = {"dim": 16, "heads": 2, "hidden": 32, "blocks": 1}  # read again at six levels
        return bases_of(scale, tasks[:1], model=small)
    return bases("mini", tasks, training={"updates": 1200, "evaluate_every": 600})


def _keeps(variant: str, against: str, words: str, margin: float = 2.0) -> PlannedContrast:
    return PlannedContrast(
        variant=variant, against=against, endpoint=CORRUPTED, margin=margin, words=words
    )


PROTOCOL = StudyProtocol(
    name="noise",
    question="Does a smoothing that cannot amplify keep more under noise than a free convolution?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(1e-3, 2e-3, 4e-3),
    endpoints=(CORRUPTED, ACCURACY),
    gates=(
        BaselineGate(task="mnist-mini", endpoint=ACCURACY, least=30.0, words="three times chance"),
        BaselineGate(task="image-mini", endpoint=ACCURACY, least=17.15, words="grey-level counts"),
        BaselineGate(
            task="text-mini", endpoint=ACCURACY, least=53.4, words="chance by three standard errors"
        ),
    ),
    contrasts=(
        _keeps(
            STEPS,
            FREE_FROM_IDENTITY,
            "Under noise sixteen steps keep more than 2 points more than a free convolution of "
            "width 33.",
        ),
        _keeps(
            STEPS,
            NARROW,
            "Under noise sixteen steps keep more than 2 points more than a free convolution of "
            "width 3.",
        ),
        _keeps(
            STEPS, ROTARY, "Under noise sixteen steps keep more than 2 points more than rotary."
        ),
        _keeps(
            BOUNDED,
            FREE,
            "Under noise the bounded stencil keeps more than the free one of the same start.",
            margin=0.0,
        ),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; the level of a task is the first at which the baseline's mean "
    "over test seeds has lost half of what it has above the largest class, else the highest",
)
EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: TASKS,
    bases=_bases,
    fixed_tasks=True,
    seeds=dict(SIX_SEEDS) | {Scale.QUICK: 1},
    protocol=PROTOCOL,
    conclude=by_protocol(PROTOCOL),
)
