"""B: do the stabilizing effects survive other schemes and steps?

The simulator with and without norms, integrated by Lie and Strang splitting and by Heun's method
with one, two and four steps a block. If norms do what paper B says, they do it for the equation,
not for one way of stepping it.

About 8.4 core-hours up to its only look, by timed updates of every variant on one busy core; the
slowest run takes 439 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from depthpde.papers.ablation.by_depth import TRAINING, training_table
from depthpde.papers.ablation.variants import BOTH, NO_NORM, STABILIZERS
from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASKS = ("listops-mini", "mnist-mini")
METHODS, STEPS = ("lie", "strang", "heun"), (1, 2, 4)


def _label(method: str, steps: int, stabilizer: str) -> str:
    return f"{method}, dt 1/{steps}, {stabilizer}"


VARIANTS = tuple(
    Variant(
        _label(method, steps, words),
        f"{words} of residual and norm, {method} with {steps} steps a block",
        model={"stabilizer": STABILIZERS[words]},
        training={"clip": None},
        run={"simulator": {"method": method, "steps": steps, "diffusion": 0.1}},
    )
    for method in METHODS
    for steps in STEPS
    for words in (BOTH, NO_NORM)
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        small = {"dim": 8, "heads": 1, "hidden": 16, "blocks": 1}
        short = {"updates": 2, "batch_size": 4, "warmup": 1, "evaluate_every": 2, "log_every": 1}
        return bases("mini", tasks[:1], model=small, training=short)
    training = {"updates": 400, "warmup": 40, "evaluate_every": 200, "log_every": 5}
    return bases("mini", tasks, model={"blocks": 6}, training=training)


def _worse(method: str, steps: int) -> PlannedContrast:
    return PlannedContrast(
        variant=_label(method, steps, BOTH),
        against=_label(method, steps, NO_NORM),
        endpoint=ACCURACY,
        words=f"Norms help the equation stepped by {method} with dt = 1/{steps}.",
    )


PROTOCOL = StudyProtocol(
    name="schemes",
    question="Do the stabilizing effects of norms survive other schemes and steps?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(5e-4, 1e-3, 2e-3),
    endpoints=(ACCURACY,),
    contrasts=tuple(_worse(*each) for each in (("lie", 1), ("strang", 1), ("heun", 4), ("lie", 4))),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; the cells that no test names are shown and decide nothing",
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
    conclude=by_protocol(PROTOCOL, tables=lambda evidence: {TRAINING: training_table(evidence)}),
)
