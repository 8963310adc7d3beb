"""B: what residuals and norms do in six blocks on ListOps of length 1,000, with clipping off.

Paper B as its summary gives it: the Transformer and its simulator, both stabilizers, either and
none, trained without gradient clipping; two cells are trained once more with it. A run that
diverges counts as the largest class, so that what breaks is never left out.

About 13.6 core-hours up to its only look, by timed updates of every variant on one busy core; the
slowest run takes 748 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from depthpde.papers.ablation.by_depth import layer_tables
from depthpde.papers.ablation.variants import (
    BOTH,
    NEITHER,
    NO_NORM,
    NO_RESIDUAL,
    SIMULATOR,
    TRANSFORMER,
    label,
    variants,
)
from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import Experiment
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASK = "listops-1000"
CLIP = 1.0


def _clipped(name: str) -> str:
    return f"{name}, clipped"


def _with_clip(variant: Variant, clip: float | None) -> Variant:
    """Return a variant that is trained with gradients clipped at a norm, or not at all."""
    if clip is None:
        return replace(variant, training={"clip": None})
    words = f"{variant.words}, gradients clipped at norm {clip:g}"
    return replace(variant, label=_clipped(variant.label), words=words, training={"clip": clip})


_ALL = variants()
_CONTROLS = (label(TRANSFORMER, BOTH), label(TRANSFORMER, NO_NORM))
VARIANTS = (
    *(_with_clip(each, None) for each in _ALL),
    *(_with_clip(each, CLIP) for each in _ALL if each.label in _CONTROLS),
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        small = {"dim": 16, "heads": 2, "hidden": 32, "blocks": 4}
        short = {"updates": 4, "batch_size": 4, "warmup": 1, "evaluate_every": 4, "log_every": 1}
        return bases("mini", ["listops-mini"], model=small, training=short)
    model = {"dim": 64, "heads": 4, "hidden": 128, "blocks": 6}
    training = {"updates": 600, "batch_size": 16, "warmup": 60, "evaluate_every": 300}
    return bases("mini", tasks, model=model, training=training | {"log_every": 5})


def _above(variant: str, against: str, words: str) -> PlannedContrast:
    return PlannedContrast(variant=variant, against=against, endpoint=ACCURACY, words=words)


PROTOCOL = StudyProtocol(
    name="six-blocks",
    question="What do residuals and norms do in six blocks on ListOps of length 1,000, unclipped?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(5e-4, 1e-3, 2e-3),
    endpoints=(ACCURACY,),
    gates=(
        BaselineGate(task=TASK, endpoint=ACCURACY, least=20.0, words="the largest class, 17 %"),
    ),
    contrasts=(
        _above(
            label(TRANSFORMER, BOTH),
            label(TRANSFORMER, NO_RESIDUAL),
            "Without residuals a Transformer of six blocks is worse.",
        ),
        _above(
            label(TRANSFORMER, BOTH),
            label(TRANSFORMER, NO_NORM),
            "Without norms and without clipping it is worse.",
        ),
        _above(
            label(SIMULATOR, BOTH),
            label(SIMULATOR, NEITHER),
            "The simulator needs its stabilizers as the Transformer does.",
        ),
        _above(
            _clipped(label(TRANSFORMER, NO_NORM)),
            label(TRANSFORMER, NO_NORM),
            "Without norms it is clipping that keeps training alive.",
        ),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; cosines, gradient norms and attention by layer are read from "
    "the probes and curves of these runs and decide nothing",
)
EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: (TASK,),
    bases=_bases,
    fixed_tasks=True,
    protocol=PROTOCOL,
    conclude=by_protocol(PROTOCOL, tables=layer_tables),
)
