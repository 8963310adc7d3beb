"""B: what residuals and norms do in six blocks on ListOps of length 1,000, with clipping off.

Paper B as its summary gives it: the Transformer and its simulator, both stabilizers, either and
none, trained without gradient clipping; two cells are trained once more with it. What is tested
first are paper B's own signs, drift and gradients, which show whether or not a network has learned
anything: at this length a whole Transformer may leave the largest class after a thousand updates
of four examples, or not yet (seed 210: 33 % at a rate of 1e-3, 16 % at half of it and at twice).
Accuracy comes last. A run that diverges counts as the largest class, as a gradient of 10⁴ at least
and as a cosine of 0, so that what breaks is never left out.

Took 5.7 core-hours up to its only look; a run takes five minutes by the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from depthpde.papers.ablation.by_depth import layer_tables
from depthpde.papers.ablation.variants import (
    BOTH,
    NO_NORM,
    NO_RESIDUAL,
    SIMULATOR,
    TRANSFORMER,
    label,
    variants,
)
from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import Experiment
from depthpde.records.protocols.endpoints import ACCURACY, COSINE_TO_INPUT, LARGEST_GRADIENT
from depthpde.records.protocols.protocol import Look, PlannedContrast, StudyProtocol
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
    training = {"updates": 1500, "batch_size": 4, "warmup": 150, "evaluate_every": 1500}
    return bases("mini", tasks, model=model, training=training | {"log_every": 5})


def _drift(system: str) -> PlannedContrast:
    return PlannedContrast(
        variant=label(system, BOTH),
        against=label(system, NO_RESIDUAL),
        endpoint=COSINE_TO_INPUT,
        words=f"{system}: without residuals the last block has less in common with the input.",
    )


def _growth(system: str, words: str, *, margin: float = 0.0) -> PlannedContrast:
    return PlannedContrast(
        variant=label(system, NO_NORM),
        against=label(system, BOTH),
        endpoint=LARGEST_GRADIENT,
        margin=margin,
        words=f"{system}: {words}",
    )


def _worse(stabilizer: str, words: str) -> PlannedContrast:
    return PlannedContrast(
        variant=label(TRANSFORMER, BOTH),
        against=label(TRANSFORMER, stabilizer),
        endpoint=ACCURACY,
        words=f"{TRANSFORMER}: {words}",
    )


_LARGER = "without norms and clipping the largest gradient of a training is larger."
PROTOCOL = StudyProtocol(
    name="six-blocks",
    question="What do residuals and norms do in six blocks on ListOps of length 1,000, unclipped?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(5e-4, 1e-3, 2e-3),
    endpoints=(COSINE_TO_INPUT, LARGEST_GRADIENT, ACCURACY),
    contrasts=(
        _drift(TRANSFORMER),
        _drift(SIMULATOR),
        _growth(TRANSFORMER, _LARGER),
        _growth(SIMULATOR, _LARGER),
        _growth(TRANSFORMER, "it explodes, tenfold and more.", margin=1.0),
        PlannedContrast(
            variant=label(TRANSFORMER, NO_NORM),
            against=_clipped(label(TRANSFORMER, NO_NORM)),
            endpoint=LARGEST_GRADIENT,
            words=f"{TRANSFORMER}: without norms it is clipping that keeps gradients small.",
        ),
        _worse(NO_RESIDUAL, "without residuals it learns less."),
        _worse(NO_NORM, "without norms and clipping it learns less."),
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
