"""H3: is wide reach from one number worth most when data are few?

A width-33 convolution has 33 parameters a feature, sixteen diffusion steps have one. If smoothing
regularizes at the source, its advantage must fall with the number of training examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.confirmatory.stencil import FREE_FROM_IDENTITY, STEPS
from depthpde.papers.confirmatory.stencil import VARIANTS as STENCILS
from depthpde.papers.experiment import Experiment
from depthpde.papers.extra_tables import difference_table
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASKS = ("mnist-mini", "image-mini", "text-mini")
SIZES = (250, 1000, 4000, 16000)
BY_SIZE = "sixteen steps − free convolution of width 33, by the number of training examples"


def _label(variant: str, examples: int) -> str:
    return f"{variant}, n = {examples}"


VARIANTS = tuple(
    replace(
        each,
        label=_label(each.label, size),
        words=f"{each.words}; {size} training examples",
        run={"examples": size},
    )
    for size in SIZES
    for each in STENCILS
    if each.label in (STEPS, FREE_FROM_IDENTITY)
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        return bases_of(scale, tasks[:1])
    return bases("mini", tasks, training={"updates": 1000, "evaluate_every": 100})


def _pair(examples: int) -> tuple[str, str]:
    return _label(STEPS, examples), _label(FREE_FROM_IDENTITY, examples)


PROTOCOL = StudyProtocol(
    name="few-data",
    question="Is wide reach from one number worth most when data are few?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(1e-3, 2e-3, 4e-3, 8e-3),
    endpoints=(ACCURACY,),
    contrasts=(
        PlannedContrast(
            variant=_pair(250)[0],
            against=_pair(250)[1],
            beyond=_pair(16000),
            endpoint=ACCURACY,
            words="The advantage of sixteen steps over a free convolution of width 33 is larger "
            "with 250 examples than with 16,000.",
        ),
        PlannedContrast(
            variant=_pair(1000)[0],
            against=_pair(1000)[1],
            endpoint=ACCURACY,
            margin=1.0,
            words="With 1,000 examples sixteen steps are more than 1 point above a free "
            "convolution of width 33.",
        ),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; the weights of the best validation are kept, so that runs of "
    "many epochs may stop early",
)
EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    baseline=_pair(250)[1],
    tasks=lambda scale: TASKS,
    bases=_bases,
    fixed_tasks=True,
    protocol=PROTOCOL,
    conclude=by_protocol(
        PROTOCOL,
        tables=lambda evidence: {
            BY_SIZE: difference_table(evidence, "examples", {f"{n:,}": _pair(n) for n in SIZES})
        },
    ),
)
