"""H5: is bounded diffusion enough where a free convolution solves recall?

Multi-query associative recall and copying, with one block and with two. One block must bring a key
and its value together before attention compares anything: a convolution on keys does (2407.05591).
The stake: a ratio of at most ½ fails with one block, one of up to 1 on queries and keys does not.
Rivals: Canon (three sites back, so three steps stand beside it), smear, rotary positions. Upwind
diffusion with a ratio of up to 1 is token shift.

About 3.5 core-hours up to its only look, by timed updates of every variant on one busy
core; the slowest run takes 61 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.papers.placement import BOUND
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASKS = ("recall-mini", "copying-mini")
BLOCKS = (1, 2)
_STREAM = ("after_embedding",)
_KEYS = ({"position": "in_attention", "option": "queries_keys"},)
_HALF = {"kind": "diffusion", "bound": BOUND, "initial_ratio": BOUND / 2}
_WHOLE = {"kind": "token_shift", "initial_ratio": 0.5}
_CANON, _SMEAR = {"kind": "canon"}, {"kind": "smear"}
NOTHING, ROTARY = "nothing placed", "rotary"
HALF_KEYS, WHOLE_KEYS = "upwind r ≤ ½ on keys", "upwind r ≤ 1 on keys"
CANON_KEYS, CANON = "Canon on keys", "Canon on the stream"
MIXINGS: Mapping[str, dict[str, Any]] = {
    NOTHING: {},
    ROTARY: {"encoding": "rotary"},
    "upwind r ≤ ½ on the stream": {"positions": _STREAM, "layer": _HALF},
    "upwind r ≤ 1 on the stream": {"positions": _STREAM, "layer": _WHOLE},
    HALF_KEYS: {"positions": _KEYS, "layer": _HALF},
    WHOLE_KEYS: {"positions": _KEYS, "layer": _WHOLE},
    "upwind r ≤ ½, 3 steps on keys": {"positions": _KEYS, "layer": _HALF | {"steps": 3}},
    "adaptive on keys": {"positions": _KEYS, "layer": {"kind": "adaptive"}},
    CANON: {"positions": _STREAM, "layer": _CANON},
    CANON_KEYS: {"positions": _KEYS, "layer": _CANON},
    "smear on the stream": {"positions": _STREAM, "layer": _SMEAR},
}
"""Name → fields of the ModelConfig; on keys means on queries and keys, each with its own layer."""


def _label(mixing: str, blocks: int) -> str:
    return f"{mixing}, {blocks} block{'s' if blocks > 1 else ''}"


VARIANTS = tuple(
    Variant(_label(name, blocks), f"{name}; depth {blocks}", model={"blocks": blocks} | model)
    for blocks in BLOCKS
    for name, model in MIXINGS.items()
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    return bases_of(scale, tasks[:1]) if scale is Scale.QUICK else bases("mini", tasks)


def _one_block(variant: str, against: str, margin: float, words: str) -> PlannedContrast:
    return PlannedContrast(
        variant=_label(variant, 1),
        against=_label(against, 1),
        endpoint=ACCURACY,
        margin=margin,
        words=words,
    )


PROTOCOL = StudyProtocol(
    name="recall",
    question="Is bounded diffusion enough where a free convolution solves recall?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(1e-3, 2e-3, 4e-3),
    endpoints=(ACCURACY,),
    contrasts=(
        _one_block(CANON_KEYS, NOTHING, 2.0, "Canon on keys solves what one block alone does not."),
        _one_block(WHOLE_KEYS, HALF_KEYS, 2.0, "A ratio of up to 1 on keys recalls more than ½."),
        _one_block(WHOLE_KEYS, ROTARY, 0.0, "It recalls more than rotary positions."),
        PlannedContrast(
            variant=_label(WHOLE_KEYS, 1),
            against=_label(CANON_KEYS, 1),
            endpoint=ACCURACY,
            claimed="equivalent",
            margin=2.0,
            words="Bounded diffusion with a ratio of up to 1 on keys is as good as Canon there.",
        ),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; two blocks are shown and decide nothing; a quarter of the "
    "symbols of recall are answers, so 25 points are all there is",
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
