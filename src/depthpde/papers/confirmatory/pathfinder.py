"""R1: is Pathfinder learned sooner with diffusion, when every variant has a rate of its own?

`placement` compared variants with a baseline whose recipe had been changed until its own six seeds
escaped. Here every variant chooses its rate on tuning seeds, and fresh seeds judge the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import Experiment
from depthpde.papers.placement import BASELINE, CONTROLS, EMBEDDING, START, positions
from depthpde.records.protocols.endpoints import ACCURACY, ESCAPE
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASK = "pathfinder-mini"
FREE = Variant(
    "free stencil from blur",
    "a free convolution of width 3 that starts where diffusion does, with diffusion's gain",
    model={
        "positions": ("after_embedding",),
        "layer": {
            "kind": "learned_stencil",
            "steps": 1,
            "start": "heat",
            "initial_ratio": START,
            "taps": "free",
        },
    },
)
VARIANTS = (
    BASELINE,
    *(each for each in positions() if each.label == EMBEDDING),
    FREE,
    *(each for each in CONTROLS if each.label in ("fixed blur", "rotary")),
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        return bases_of(scale, tasks)
    return bases("mini", tasks, training={"updates": 1800, "evaluate_every": 600})


def _sooner(against: str, words: str) -> PlannedContrast:
    return PlannedContrast(
        variant=EMBEDDING,
        against=against,
        endpoint=ESCAPE,
        words=f"Diffusion after the embedding leaves Pathfinder's plateau sooner than {words}.",
    )


PROTOCOL = StudyProtocol(
    name="pathfinder",
    question="Is Pathfinder learned sooner with diffusion, each variant at a rate of its own?",
    tuning_seeds=(200, 201),
    test_seeds=tuple(range(100, 112)),
    rates=(5e-4, 1e-3, 2e-3, 4e-3),
    endpoints=(ESCAPE, ACCURACY),
    gates=(
        BaselineGate(
            task=TASK,
            endpoint=ACCURACY,
            least=60.0,
            words="the distance of the marks, 57.2, by three standard errors",
        ),
    ),
    contrasts=(
        _sooner(BASELINE.label, "nothing placed"),
        _sooner(FREE.label, "a free convolution that starts at the same stencil"),
        _sooner("fixed blur", "the same blur with nothing learned"),
        _sooner("rotary", "rotary positions with nothing placed"),
    ),
    looks=(Look(seeds=12, p=0.05),),
    stopping="after the twelfth seed; a rate is chosen by the mean validation loss of both tuning "
    "seeds; p is the two-sided log-rank test, exchanged within pairs",
)
EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: (TASK,),
    bases=_bases,
    fixed_tasks=True,
    protocol=PROTOCOL,
    conclude=by_protocol(PROTOCOL),
)
