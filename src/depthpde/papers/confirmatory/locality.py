"""The locality dial: is the gain of diffusion local, or does it reach far?

Every model is read once more with attention limited to a window, and on inputs whose blocks are in
another order. A gain that survives both is a gain of near neighbours. Pathfinder is read like the
others and stands in no mean.

About 1.9 core-hours up to its only look, by timed updates and readings of every variant on one busy
core with AVX-512; the slowest run takes 50 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.confirmatory.readings import gain_table
from depthpde.papers.confirmatory.stencil import ROTARY, STEPS
from depthpde.papers.confirmatory.stencil import VARIANTS as STENCILS
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.papers.placement import BASELINE, EMBEDDING, positions
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import Look, PlannedContrast, StudyProtocol
from depthpde.sweeps.grid import bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.papers.extra_tables import Rows
    from depthpde.records.evidence import Evidence
    from depthpde.runs.presets import Preset

TASKS = (
    "listops-mini",
    "text-mini",
    "retrieval-mini",
    "image-mini",
    "mnist-mini",
    "newsgroups-mini",
    "pathfinder-mini",
)
"""Every mini task with one answer an example."""
WINDOWS, BLOCKS = (2, 8, 32), (16, 64)
NEAR, BLOCKWISE = "accuracy in a window of 8", "accuracy in shuffled blocks of 16"
VARIANTS = tuple(
    replace(each, run={"windows": WINDOWS, "shuffles": BLOCKS})
    for each in (
        BASELINE,
        *(each for each in positions() if each.label == EMBEDDING),
        *(each for each in STENCILS if each.label in (STEPS, ROTARY)),
    )
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:
        return bases_of(scale, ["listops-mini"])
    return bases("mini", tasks)


def _local(variant: str, against: str, endpoint: str, words: str) -> PlannedContrast:
    return PlannedContrast(variant=variant, against=against, endpoint=endpoint, words=words)


PROTOCOL = StudyProtocol(
    name="locality",
    question="Is the gain of diffusion after the embedding local?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(1e-3, 2e-3, 4e-3, 8e-3),
    endpoints=(ACCURACY, NEAR, BLOCKWISE),
    contrasts=(
        _local(STEPS, BASELINE.label, ACCURACY, "Sixteen steps gain with attention over all."),
        _local(
            STEPS,
            BASELINE.label,
            NEAR,
            "They gain when attention sees eight sites either way: the gain is local.",
        ),
        _local(
            STEPS,
            BASELINE.label,
            BLOCKWISE,
            "They gain when blocks of sixteen symbols stand in another order.",
        ),
        _local(EMBEDDING, BASELINE.label, NEAR, "One step gains within eight sites as well."),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; other windows and blocks are shown and decide nothing",
)
GAIN = "sixteen steps − nothing placed, by how the test split is read"
_READ = {"windowed": "window of {}", "shuffled": "blocks of {} in another order"}


def _tables(evidence: Evidence) -> dict[str, Rows]:
    return {GAIN: gain_table(evidence, (STEPS, BASELINE.label), _READ)}


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
