"""The rivals: is one step of diffusion more than what others add for the same purpose?

Canon (a causal convolution of width four + residual), smear (a gated share of the site before), the
exponential average, on the stream after the embedding; and on queries and keys, where dynamic short
convolutions stand. Every added parameter has the same gain, every variant its own rate; Canon is
compared with as many steps as it reaches sites.

About 3.4 core-hours up to its only look, by timed updates of every variant on one busy
core; the slowest run takes 130 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from depthpde.papers.claims import MARGIN
from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import Experiment
from depthpde.papers.placement import BASELINE, BOUND, EMBEDDING, START, positions
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import (
    BaselineGate,
    Claimed,
    Look,
    PlannedContrast,
    StudyProtocol,
)
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASKS = ("listops-mini", "text-mini", "image-mini")
CANON, SMEAR, AVERAGE = "Canon", "smear", "exponential average"
THREE = "diffusion, 3 steps"
ON_KEYS, CANON_ON_KEYS = "diffusion on keys", "Canon on keys"
_KEYS = ({"position": "in_attention", "option": "queries_keys"},)
_STEP = {"kind": "diffusion", "bound": BOUND, "initial_ratio": START}


def _variant(label: str, words: str, positions: Any, layer: Mapping[str, Any]) -> Variant:
    return Variant(label, words, model={"positions": positions, "layer": layer})


_STREAM, CANON_REACH = ("after_embedding",), 3
VARIANTS = (
    BASELINE,
    *(each for each in positions() if each.label == EMBEDDING),
    _variant(
        THREE, "three steps, which reach as far as Canon", _STREAM, _STEP | {"steps": CANON_REACH}
    ),
    _variant(CANON, "a causal convolution of width four + residual", _STREAM, {"kind": "canon"}),
    _variant(SMEAR, "a gated share of the site before", _STREAM, {"kind": "smear"}),
    _variant(
        AVERAGE,
        "an exponential average both ways, memory ¼ at the start",
        _STREAM,
        {"kind": "exponential_average", "initial_ratio": 0.25},
    ),
    _variant(ON_KEYS, "one step on queries and keys, each with its own ratios", _KEYS, _STEP),
    _variant(CANON_ON_KEYS, "Canon on queries and on keys", _KEYS, {"kind": "canon"}),
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        return bases_of(scale, tasks[:1])
    return bases("mini", tasks, training={"updates": 2000, "evaluate_every": 500})


def _same(ours: str, variant: str, words: str) -> PlannedContrast:
    return PlannedContrast(
        variant=ours,
        against=variant,
        endpoint=ACCURACY,
        claimed=Claimed.EQUIVALENT,
        margin=MARGIN,
        words=f"{words}, within ±{MARGIN:g} points.",
    )


PROTOCOL = StudyProtocol(
    name="rivals",
    question="Is one step of diffusion more than what others add for the same purpose?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(1e-3, 2e-3, 4e-3, 8e-3),
    endpoints=(ACCURACY,),
    gates=(
        BaselineGate(task="listops-mini", endpoint=ACCURACY, least=25.7, words="the root operator"),
        BaselineGate(
            task="text-mini", endpoint=ACCURACY, least=53.4, words="chance by three standard errors"
        ),
        BaselineGate(task="image-mini", endpoint=ACCURACY, least=17.15, words="grey-level counts"),
    ),
    contrasts=(
        PlannedContrast(
            variant=EMBEDDING,
            against=BASELINE.label,
            endpoint=ACCURACY,
            words="One step of diffusion after the embedding gains.",
        ),
        _same(EMBEDDING, AVERAGE, "One step is the same as an exponential average"),
        _same(EMBEDDING, SMEAR, "One step is the same as smear"),
        _same(THREE, CANON, "Three steps are the same as Canon, which reaches as far"),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; what stands on keys is shown and decides nothing",
)
EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: TASKS,
    bases=_bases,
    fixed_tasks=True,
    protocol=PROTOCOL,
    conclude=by_protocol(PROTOCOL),
)
