"""Other networks: does diffusion after the embedding help where nothing attends?

Paper A names networks without attention as its future work. Here a residual network over the image,
whose convolutions see the sites around each, and an LSTM over text and expressions, whose memory
passes every site: both mix neighbours already. No network is told its sites. Diffusion, its free
twin and its fixed one stand where `placement` has them, along the rows of the image.

About 1.8 core-hours up to its only look, by timed updates of every network on one busy core; the
slowest run takes 95 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from depthpde.papers.claims import MARGIN
from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.confirmatory.pathfinder import FREE
from depthpde.papers.experiment import SIX_SEEDS, Experiment
from depthpde.papers.placement import BASELINE, CONTROLS, EMBEDDING, positions
from depthpde.records.protocols.endpoints import ACCURACY
from depthpde.records.protocols.protocol import (
    BaselineGate,
    Claimed,
    Look,
    PlannedContrast,
    StudyProtocol,
)
from depthpde.sweeps.grid import bases
from depthpde.sweeps.scale import Scale, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset

NETWORKS: Mapping[str, dict[str, Any]] = {
    "image-mini": {"interaction": "convolution", "encoding": "none", "geometry": "rows"},
    "text-mini": {"interaction": "lstm", "encoding": "none"},
    "listops-mini": {"interaction": "lstm", "encoding": "none"},
}
"""Task → what differs from the standard encoder."""
BLUR = "fixed blur"
VARIANTS = (
    BASELINE,
    *(each for each in positions() if each.label == EMBEDDING),
    FREE,
    *(each for each in CONTROLS if each.label == BLUR),
)


def _bases(scale: Scale, tasks: Sequence[str]) -> Mapping[str, Preset]:
    if scale is Scale.QUICK:  # generated: a smoke run needs no file
        return bases_of(scale, ["listops-mini"], model=NETWORKS["listops-mini"])
    found: dict[str, Preset] = {}
    for task in tasks:
        found |= bases("mini", [task], model=NETWORKS[task])
    return found


def _same(against: str, words: str) -> PlannedContrast:
    return PlannedContrast(
        variant=EMBEDDING,
        against=against,
        endpoint=ACCURACY,
        claimed=Claimed.EQUIVALENT,
        margin=MARGIN,
        words=f"There it is the same as {words}, within ±{MARGIN:g} points.",
    )


PROTOCOL = StudyProtocol(
    name="networks",
    question="Does diffusion after the embedding help a residual network or an LSTM?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(100, 106)),
    rates=(1e-3, 2e-3, 4e-3, 8e-3),
    endpoints=(ACCURACY,),
    gates=(
        BaselineGate(task="image-mini", endpoint=ACCURACY, least=17.15, words="grey-level counts"),
        BaselineGate(
            task="text-mini", endpoint=ACCURACY, least=53.4, words="chance by three standard errors"
        ),
        BaselineGate(task="listops-mini", endpoint=ACCURACY, least=25.7, words="the root operator"),
    ),
    least_tasks=2,
    contrasts=(
        PlannedContrast(
            variant=EMBEDDING,
            against=BASELINE.label,
            endpoint=ACCURACY,
            words="One step of diffusion after the embedding helps a network without attention.",
        ),
        _same(FREE.label, "a free convolution that starts at the same stencil"),
        _same(BLUR, "the same blur with nothing learned"),
    ),
    looks=(Look(seeds=6, p=0.05),),
    tuning_share=0.4,
    stopping="after the sixth seed; a task whose gate fails is left out as long as two pass; each "
    "network by itself is shown and decides nothing",
)
EXPERIMENT = Experiment(
    name=PROTOCOL.name,
    question=PROTOCOL.question,
    variants=VARIANTS,
    tasks=lambda scale: tuple(NETWORKS),
    bases=_bases,
    fixed_tasks=True,
    seeds=dict(SIX_SEEDS) | {Scale.QUICK: 1},
    protocol=PROTOCOL,
    conclude=by_protocol(PROTOCOL),
)
