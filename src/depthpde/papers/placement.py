"""Where does diffusion help, by how much, and is it more than any local mixing?

The seven positions, learned placement (all seven at once, each starting as the identity: the
ratios say where diffusion wants to be), and what diffusion must be compared with.
"""

from __future__ import annotations

from dataclasses import replace

from depthpde.models.position import Position
from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.judgement import effect, undecided
from depthpde.records.evidence import Evidence, over_all
from depthpde.records.findings import FindingVerdict, JudgedClaim
from depthpde.records.run_model import position_of
from depthpde.sweeps.grid import Variant

BOUND, START = 0.5, 0.25
"""The papers' own bound on the ratio, and the middle of it to start from."""
DIFFUSION = {"kind": "diffusion", "bound": BOUND, "initial_ratio": START}
WORDS = {position: position.value.replace("_", " ") for position in Position}
EMBEDDING, ATTENTION = WORDS[Position.AFTER_EMBEDDING], WORDS[Position.AFTER_ATTENTION]
"""Labels of the positions that paper A speaks of."""
BASELINE = Variant("baseline", "nothing placed")


def positions() -> list[Variant]:
    """Return one-step diffusion at each of the seven positions alone."""
    return [
        Variant(
            words,
            f"one explicit step with a learned ratio per feature, {words}",
            model={"positions": (position.value,), "layer": DIFFUSION},
        )
        for position, words in WORDS.items()
    ]


LEARNED = Variant(
    "all seven, learned",
    "diffusion at all seven positions, each starting as the identity: the ratios learn the place",
    model={
        "positions": tuple(position.value for position in Position),
        "layer": DIFFUSION | {"initial_ratio": 0.0},
    },
)

CONTROLS = (
    Variant(
        "conv from identity",
        "depthwise convolution of width 3 after the embedding, started as the identity",
        model={
            "positions": ("after_embedding",),
            "layer": {"kind": "depthwise_conv", "start": "identity"},
        },
    ),
    Variant(
        "conv from blur",
        "the same convolution, started at the stencil that diffusion starts at",
        model={
            "positions": ("after_embedding",),
            "layer": {"kind": "depthwise_conv", "start": "blur", "initial_ratio": START},
        },
    ),
    Variant(
        "fixed blur",
        "diffusion with that ratio after the embedding, nothing learned",
        model={
            "positions": ("after_embedding",),
            "layer": {"kind": "blur", "initial_ratio": START},
        },
    ),
    Variant(
        "rotary", "nothing placed, rotary instead of learned sites", model={"encoding": "rotary"}
    ),
)
"""What diffusion must be compared with."""
SCEPTICS = {
    "conv from blur": "a free convolution that starts at the same stencil",
    "conv from identity": "a free convolution that starts as the identity",
    "fixed blur": "the same blur with nothing learned",
    "rotary": "rotary positions with nothing placed",
}
"""Control → what diffusion must be more than."""


def claims(evidence: Evidence) -> list[JudgedClaim]:
    """Judge what paper A claims of the positions, and what sceptics ask of them."""
    found = [
        effect(
            evidence,
            "Paper A: diffusion after the embedding raises the average by 4.07 points.",
            EMBEDDING,
            4.07,
        ),
        effect(
            evidence,
            "Paper A: diffusion after attention lowers the average by 2.5 points.",
            ATTENTION,
            -2.5,
        ),
        _best(evidence),
    ]
    return found + [
        effect(
            evidence,
            f"Sceptics: diffusion after the embedding is more than {words}.",
            EMBEDDING,
            0.1,
            against=control,
        )
        for control, words in SCEPTICS.items()
        if control in evidence.variants
    ]


def _best(evidence: Evidence) -> JudgedClaim:
    claim = "Paper A: after the embedding is the best of the seven positions."
    found = over_all(evidence)
    positions = [each for each in found if _is_one_position(evidence, each)]
    if EMBEDDING not in positions or len(positions) < 2:
        return undecided(claim, "seven positions", 0)
    order = sorted(positions, key=lambda each: -found[each].mean)
    rival = next(each for each in order if each != EMBEDDING)
    what = f"against the best other position, {rival}"
    judged = effect(evidence, claim, EMBEDDING, 0.1, against=rival, what=what)
    if judged.verdict is FindingVerdict.NOT_CONFIRMED and order[0] == EMBEDDING:
        words = f"the largest mean of the seven, but not apart from the next; {judged.finding}"
        return replace(judged, finding=words)
    return judged


def _is_one_position(evidence: Evidence, variant: str) -> bool:
    run = next(iter(evidence.records(variant)), None)
    return run is not None and position_of(run.config) is not None


EXPERIMENT = Experiment(
    name="placement",
    question="Where does diffusion help, by how much, and is it more than any local mixing?",
    variants=(BASELINE, *positions(), LEARNED, *CONTROLS),
    conclude=by_records(claims),
)
