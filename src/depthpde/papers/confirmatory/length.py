"""H4: does a model without positions but with diffusion read longer texts than it was trained on?

Trained on 256 bytes of a review, read at 512, 1,024 and 2,048 of the same kind. Diffusion knows no
absolute place, so nothing in it ends at the trained length.

Took 0.3 core-hours up to its only look, readings not counted; the slowest run takes 80 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.confirmatory.stencil import FREE_FROM_IDENTITY, ROTARY, STEPS
from depthpde.papers.confirmatory.stencil import VARIANTS as STENCILS
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASK = "text-mini"
LENGTHS = (512, 1024, 2048)
LONGER = "accuracy at length 1024"
NOTHING = "no positions"
_READ = {"transfer": tuple(f"text/{each}" for each in LENGTHS)}


def _without_positions(variant: Variant) -> Variant:
    return replace(
        variant,
        words=f"{variant.words}; no positions",
        model=dict(variant.model) | {"encoding": "none"},
        run=_READ,
    )


VARIANTS = (
    Variant(NOTHING, "nothing placed, no positions", model={"encoding": "none"}, run=_READ),
    *(replace(each, run=_READ) for each in STENCILS if each.label == ROTARY),
    *(_without_positions(e) for e in STENCILS if e.label in (STEPS, FREE_FROM_IDENTITY)),
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        small = {"dim": 8, "heads": 1, "hidden": 16, "blocks": 1}  # 4,000 texts of 2,048 bytes
        return bases_of(scale, tasks, model=small)
    return bases("mini", tasks, training={"updates": 2000, "evaluate_every": 500})


def _longer(variant: str, against: str, words: str) -> PlannedContrast:
    return PlannedContrast(variant=variant, against=against, endpoint=LONGER, words=words)


PROTOCOL = StudyProtocol(
    name="length",
    question="Does diffusion without positions read longer texts than it was trained on?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(1e-3, 2e-3, 4e-3),
    endpoints=(LONGER, ACCURACY),
    gates=(
        BaselineGate(
            task=TASK, endpoint=ACCURACY, least=53.4, words="chance by three standard errors"
        ),
    ),
    contrasts=(
        _longer(STEPS, NOTHING, "At four times the length sixteen steps are above nothing placed."),
        _longer(STEPS, ROTARY, "At four times the length they are above rotary positions."),
        _longer(
            STEPS,
            FREE_FROM_IDENTITY,
            "At four times the length they are above a free convolution of width 33.",
        ),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; 512 and 2,048 bytes are shown and decide nothing",
)
EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: (TASK,),
    bases=_bases,
    fixed_tasks=True,
    seeds=dict(SIX_SEEDS) | {Scale.QUICK: 1},
    protocol=PROTOCOL,
    conclude=by_protocol(PROTOCOL),
)
