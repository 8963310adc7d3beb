"""B: how deep can a network without norms be trained, by clipping and learning rate?

6 to 48 blocks, trained at each depth: with norms, without, and without both norms and clipping.
The tuning runs are the map, every rate on five seeds; fresh seeds test what it claims. A run that
diverges counts as the largest class; one whose first loss is beyond `loss_bound` ends before its
first update, so that nothing is learned of clipping there.

Took 1.4 core-hours up to its only look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from depthpde.papers.ablation.by_depth import TRAINING, training_table
from depthpde.papers.ablation.variants import BOTH, NO_NORM, STABILIZERS
from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.papers.extra_tables import Rows, difference_table
from depthpde.records.evidence import Evidence, score
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.records.protocols.steps import rate_label
from depthpde.records.record import State
from depthpde.records.statistics.paired import mean
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.scale import Scale

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

TASK = "listops-mini"
MAP = "test accuracy of the runs that chose rates, five seeds each"
BY_DEPTH = "what norms gain, by depth"
DEPTHS = (6, 12, 24, 48)
WITH, WITHOUT, UNCLIPPED = "norms", "no norms", "no norms, no clipping"
KINDS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    WITH: (STABILIZERS[BOTH], {"clip": 1.0}),
    WITHOUT: (STABILIZERS[NO_NORM], {"clip": 1.0}),
    UNCLIPPED: (STABILIZERS[NO_NORM], {"clip": None}),
}
"""Name → stabilizer and training."""


def _label(kind: str, blocks: int) -> str:
    return f"{kind}, {blocks} blocks"


VARIANTS = tuple(
    Variant(
        _label(kind, blocks),
        f"{blocks} blocks with residuals and {kind}",
        model={"blocks": blocks, "stabilizer": stabilizer},
        training=training,
    )
    for blocks in DEPTHS
    for kind, (stabilizer, training) in KINDS.items()
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        small = {"dim": 16, "heads": 2, "hidden": 32}
        short = {"updates": 2, "batch_size": 4, "warmup": 1, "evaluate_every": 2, "log_every": 1}
        return bases("mini", tasks, model=small, training=short)
    training = {"updates": 800, "warmup": 80, "evaluate_every": 400, "log_every": 5}
    return bases("mini", tasks, training=training)


_DEEP, _SHALLOW = DEPTHS[-1], DEPTHS[0]
_GAINS = {
    f"{blocks}: with norms − {without}": (_label(WITH, blocks), _label(without, blocks))
    for blocks in DEPTHS
    for without in (WITHOUT, UNCLIPPED)
}
PROTOCOL = StudyProtocol(
    name="depth-map",
    question="How deep can a network without norms be trained, by clipping and learning rate?",
    tuning_seeds=tuple(range(200, 205)),
    test_seeds=tuple(range(100, 106)),
    rates=(5e-4, 1e-3, 2e-3),
    endpoints=(ACCURACY,),
    gates=(
        BaselineGate(
            task=TASK,
            endpoint=ACCURACY,
            least=19.0,
            words="half way from the largest class to the root",
        ),
    ),
    contrasts=(
        PlannedContrast(
            variant=_label(WITH, _DEEP),
            against=_label(UNCLIPPED, _DEEP),
            endpoint=ACCURACY,
            words="At 48 blocks a network without norms and clipping is worse.",
        ),
        PlannedContrast(
            variant=_label(WITH, _DEEP),
            against=_label(UNCLIPPED, _DEEP),
            beyond=(_label(WITH, _SHALLOW), _label(UNCLIPPED, _SHALLOW)),
            endpoint=ACCURACY,
            words="What norms gain grows from 6 to 48 blocks.",
        ),
        PlannedContrast(
            variant=_label(WITHOUT, _DEEP),
            against=_label(UNCLIPPED, _DEEP),
            endpoint=ACCURACY,
            words="At 48 blocks without norms clipping is what keeps training alive.",
        ),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.5,
    stopping="after the sixth seed; the map by depth, clipping and rate is of the tuning seeds",
)


def rate_map(tuning: Evidence) -> Rows:
    """Lay out accuracy and divergences of the tuning runs: depth, norms and clipping by rate.

    Args:
        tuning: The runs that chose rates.
    """
    rows: Rows = []
    for each in VARIANTS:
        row = {"variant": each.label}
        for rate in PROTOCOL.rates:
            runs = tuning.records(rate_label(each.label, rate))
            reached = [value for run in runs if (value := score(run)) is not None]
            if reached:
                lost = sum(run.state is State.DIVERGED for run in runs)
                row[f"rate {rate:g}"] = f"{mean(reached):.1f}" + (
                    f", {lost} diverged" if lost else ""
                )
        if len(row) > 1:
            rows.append(row)
    return rows


EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: (TASK,),
    bases=_bases,
    fixed_tasks=True,
    seeds=dict(SIX_SEEDS) | {Scale.QUICK: 1},
    protocol=PROTOCOL,
    conclude=by_protocol(
        PROTOCOL,
        tables=lambda evidence: {
            TRAINING: training_table(evidence),
            BY_DEPTH: difference_table(evidence, "blocks", _GAINS),
        },
        tuning_tables=lambda tuning: {MAP: rate_map(tuning)},
    ),
)
