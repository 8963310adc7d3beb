"""B: do the stabilizing effects survive other schemes and steps?

The simulator with both stabilizers, without residuals and without norms, stepped by Lie splitting
(dt = 1, what a Transformer does, and dt = 1/4), by Strang splitting (dt = 1) and by Heun's method
(dt = 1/4, the nearest to the equation itself). If residuals and norms do what paper B says, they do
it for the equation, not for one way of stepping it. Without residuals the rate is F − u: with
dt = 1/4 three quarters of the field stay at every step, so that this is a question.

What is tested is paper B's own signs. Accuracy comes last: at six blocks norms were worth 28 points
on MNIST and none on ListOps, so that a test over both says little of either. Largest and smallest
step stand for all between: dt = 1/2 would cost half as much again.

Took 2.5 core-hours up to its only look; the slowest run takes two minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from depthpde.papers.ablation.by_depth import CENTRED, COSINE, TRAINING, depth_table, training_table
from depthpde.papers.ablation.variants import BOTH, NO_NORM, NO_RESIDUAL, STABILIZERS
from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.records.protocols.endpoints import ACCURACY, COSINE_TO_INPUT, LARGEST_GRADIENT
from depthpde.records.protocols.protocol import Claimed, Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale

if TYPE_CHECKING:
    from depthpde.records.evidence import Evidence
    from depthpde.runs.presets import Preset

TASKS = ("listops-mini", "mnist-mini")
SCHEMES = (("lie", 1), ("heun", 4), ("strang", 1), ("lie", 4))
"""Method, and steps a block; in the order of the tests."""
TWOFOLD = 0.3
"""Decades: growth that differs by less than a factor of two is the same."""


def _label(method: str, steps: int, stabilizer: str) -> str:
    return f"{method}, dt {_dt(steps)}, {stabilizer}"


def _dt(steps: int) -> str:
    return "1" if steps == 1 else f"1/{steps}"


VARIANTS = tuple(
    Variant(
        _label(method, steps, words),
        f"{words} of residual and norm, {method} with dt = {_dt(steps)}",
        model={"stabilizer": STABILIZERS[words]},
        training={"clip": None},
        run={"simulator": {"method": method, "steps": steps, "diffusion": 0.1}},
    )
    for method, steps in SCHEMES
    for words in (BOTH, NO_RESIDUAL, NO_NORM)
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        small = {"dim": 8, "heads": 1, "hidden": 16, "blocks": 1}
        short = {"updates": 2, "batch_size": 4, "warmup": 1, "evaluate_every": 2, "log_every": 1}
        return bases("mini", tasks[:1], model=small, training=short)
    training = {"updates": 400, "warmup": 40, "evaluate_every": 200, "log_every": 5}
    return bases("mini", tasks, model={"blocks": 6}, training=training)


def _growth(method: str, steps: int) -> PlannedContrast:
    return PlannedContrast(
        variant=_label(method, steps, NO_NORM),
        against=_label(method, steps, BOTH),
        endpoint=LARGEST_GRADIENT,
        words=f"Without norms the largest gradient is larger, by {method} with dt = {_dt(steps)}.",
    )


def _drift(method: str, steps: int) -> PlannedContrast:
    return PlannedContrast(
        variant=_label(method, steps, BOTH),
        against=_label(method, steps, NO_RESIDUAL),
        endpoint=COSINE_TO_INPUT,
        words="Without residuals the end has less in common with the input, by "
        f"{method} with dt = {_dt(steps)}.",
    )


def _pair(scheme: tuple[str, int], stabilizers: tuple[str, str]) -> tuple[str, str]:
    first, second = stabilizers
    return _label(*scheme, first), _label(*scheme, second)


BLOCKS, NEAREST = SCHEMES[0], SCHEMES[1]
"""What a Transformer does; what is nearest to the equation."""
_FINE = _pair(NEAREST, (NO_NORM, BOTH))
PROTOCOL = StudyProtocol(
    name="schemes",
    question="Do the stabilizing effects of residuals and norms survive other schemes and steps?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(5e-4, 1e-3, 2e-3),
    endpoints=(LARGEST_GRADIENT, COSINE_TO_INPUT, ACCURACY),
    contrasts=(
        *(_growth(*each) for each in SCHEMES),
        *(_drift(*each) for each in SCHEMES),
        PlannedContrast(
            variant=_FINE[0],
            against=_FINE[1],
            endpoint=LARGEST_GRADIENT,
            claimed=Claimed.EQUIVALENT,
            margin=TWOFOLD,
            beyond=_pair(BLOCKS, (NO_NORM, BOTH)),
            words="Near the equation gradients without norms grow as they do by the block.",
        ),
        PlannedContrast(
            variant=_FINE[1],
            against=_FINE[0],
            endpoint=ACCURACY,
            words="Near the equation norms help to learn.",
        ),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; the tables beside the tests decide nothing",
)


def _tables(evidence: Evidence) -> dict[str, list[dict[str, str]]]:
    tables = {title: depth_table(evidence, title) for title in (COSINE, CENTRED)}
    return {TRAINING: training_table(evidence), **tables}


EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: TASKS,
    bases=_bases,
    fixed_tasks=True,
    seeds=dict(SIX_SEEDS) | {Scale.QUICK: 1},
    protocol=PROTOCOL,
    conclude=by_protocol(PROTOCOL, tables=_tables),
)
