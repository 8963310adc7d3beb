"""Where does diffusion help, by how much, and is it more than any local mixing?

The seven positions, learned placement (all seven at once, each starting as the identity: the
ratios say where diffusion wants to be), and what diffusion must be compared with.
"""

from __future__ import annotations

from depthpde.models.position import Position
from depthpde.papers.claims import (
    MARGIN,
    Judged,
    effect_claim,
    escape_claim,
    in_order,
    undecided,
)
from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.placement_tables import (
    Rows,
    along_training,
    escape_table,
    fragile,
    own_digits,
)
from depthpde.records.contrasts import difference
from depthpde.records.evidence import Evidence, over_all
from depthpde.records.findings import JudgedClaim
from depthpde.records.run_model import position_of
from depthpde.records.verdicts import Hypothesis
from depthpde.sweeps.grid import Variant

BOUND, START = 0.5, 0.25
"""Paper A's bound on the ratio; the start, in the middle of it, is ours."""
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
    "fixed blur": "the same blur with nothing learned",
    "rotary": "rotary positions with nothing placed",
}
"""Control → what sceptics say that diffusion is no more than, in the order they are asked."""
FOUND_BY_ITSELF = "conv from identity"
"""The control that would have to find the blur by itself."""
GAIN = Hypothesis(sign=1, size=4.07, margin=MARGIN)
LOSS = Hypothesis(sign=-1, size=2.5, margin=MARGIN)
MORE = Hypothesis(sign=1, margin=MARGIN)
SAME = Hypothesis(sign=0, margin=MARGIN)


def claims(evidence: Evidence) -> list[JudgedClaim]:
    """Judge what paper A claims of the positions, in its order, and what sceptics say of it."""
    base = evidence.baseline
    paper = [
        effect_claim(
            evidence,
            "Paper A: diffusion after the embedding raises the average by 4.07 points.",
            difference(EMBEDDING, base),
            GAIN,
            what=f"{EMBEDDING} − nothing placed",
        ),
        effect_claim(
            evidence,
            "Paper A: diffusion after attention lowers the average by 2.5 points.",
            difference(ATTENTION, base),
            LOSS,
            what=f"{ATTENTION} − nothing placed",
        ),
        _best(evidence),
    ]
    return [*in_order(paper), *in_order(_sceptics(evidence)), *_escapes(evidence)]


def _sceptics(evidence: Evidence) -> list[Judged | JudgedClaim]:
    found = [
        effect_claim(
            evidence,
            f"Sceptics: diffusion after the embedding is no more than {words}.",
            difference(EMBEDDING, control),
            SAME,
            what=f"{EMBEDDING} − {control}",
        )
        for control, words in SCEPTICS.items()
        if control in evidence.variants
    ]
    if FOUND_BY_ITSELF in evidence.variants:
        found.append(
            effect_claim(
                evidence,
                "Diffusion after the embedding is more than a free convolution that starts as the "
                "identity.",
                difference(EMBEDDING, FOUND_BY_ITSELF),
                MORE,
                what=f"{EMBEDDING} − {FOUND_BY_ITSELF}",
            )
        )
    return found


def _best(evidence: Evidence) -> Judged | JudgedClaim:
    claim = "Paper A: after the embedding is the best of the seven positions."
    found = over_all(evidence)
    positions = [each for each in found if _is_one_position(evidence, each)]
    if EMBEDDING not in positions or len(positions) < 2:
        return undecided(claim, "seven positions: no pair is finished", 0)
    order = sorted(positions, key=lambda each: -found[each].mean)
    rival = next(each for each in order if each != EMBEDDING)
    first = "largest mean of the seven" if order[0] == EMBEDDING else "not the largest mean"
    what = f"{EMBEDDING}, {first}, − the best other, {rival}"
    return effect_claim(evidence, claim, difference(EMBEDDING, rival), MORE, what=what)


def _escapes(evidence: Evidence) -> list[JudgedClaim]:
    claim = "Sceptics: diffusion after the embedding delays what is learned at once or not yet."
    return escape_claim(evidence, claim, EMBEDDING, sooner=False)


def _is_one_position(evidence: Evidence, variant: str) -> bool:
    run = next(iter(evidence.records(variant)), None)
    return run is not None and position_of(run.config) is not None


def tables(evidence: Evidence) -> dict[str, Rows]:
    """Return what a reader asks next: one task, the time of training, the plateau, the examples."""
    controls = [each for each in ("conv from blur", "rotary") if each in evidence.variants]
    return {
        "after embedding, +4.07 claimed: the verdict when tasks are left out": fragile(
            evidence, EMBEDDING, GAIN
        ),
        "after embedding − baseline along training, validation points": along_training(
            evidence, EMBEDDING
        ),
        "Pathfinder: leaving the plateau": escape_table(evidence),
        "ListOps: points gained, by how many arguments of the root are its own digits": own_digits(
            evidence, [EMBEDDING, *controls]
        ),
    }


EXPERIMENT = Experiment(
    name="placement",
    question="Where does diffusion help, by how much, and is it more than any local mixing?",
    variants=(BASELINE, *positions(), LEARNED, *CONTROLS),
    conclude=by_records(claims, tables),
)
