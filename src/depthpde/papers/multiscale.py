"""Is a mix of scales better than one scale under the same bound?"""

from __future__ import annotations

from depthpde.models.position import Position
from depthpde.pages.formatting import format_interval, signed
from depthpde.papers.claims import effect_claim, in_order
from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.placement import BASELINE, BOUND, DIFFUSION, MORE, START, WORDS
from depthpde.records.contrasts import (
    average_difference,
    contrast,
    difference,
    differences_of,
)
from depthpde.records.evidence import Evidence
from depthpde.records.findings import JudgedClaim
from depthpde.records.run_model import SCALES
from depthpde.records.scores import scores_of
from depthpde.records.statistics.combination import combined_interval, combined_mean
from depthpde.sweeps.grid import Variant
from depthpde.sweeps.scale import arena_tasks

QUESTION = "Is a mix of fast, medium and slow diffusion better than one scale?"
CONTROL = Variant(
    "fast, fixed",
    f"{SCALES['fast']} steps of the same diffusion after the embedding, nothing learned",
    model={
        "positions": (Position.AFTER_EMBEDDING.value,),
        "layer": {"kind": "blur", "steps": SCALES["fast"], "initial_ratio": START},
    },
)
"""Is the widest reach more than a wide blur? One of one step is among placement's controls."""


def _single(scale: str, position: Position, label: str) -> Variant:
    steps = SCALES[scale]
    more = {"steps": steps} if steps > 1 else {}  # one step is the layer's own default
    return Variant(
        label,
        f"{steps} step{'s' * (steps > 1)} of one diffusion, {WORDS[position]}",
        model={"positions": (position.value,), "layer": DIFFUSION | more},
    )


def _mixed(label: str, position: Position, *, gated: bool) -> Variant:
    weights = "weights from each site's content" if gated else "learned weights"
    return Variant(
        label,
        f"{', '.join(SCALES)} mixed with {weights}, {WORDS[position]}",
        model={
            "positions": (position.value,),
            "layer": {
                "kind": "multiscale",
                "scales": " ".join(SCALES),
                "gated": gated,
                "bound": BOUND,
                "initial_ratio": START,
            },
        },
    )


def claims(evidence: Evidence) -> list[JudgedClaim]:
    """Judge a mix of scales against every single one, widest last; then what sceptics ask."""
    paper = [
        effect_claim(
            evidence,
            f"Paper A: a mix of scales is better than {single} diffusion alone.",
            difference("mixed", single),
            MORE,
            what=f"mixed − {single}",
        )
        for single in SCALES
        if single in evidence.variants
    ]
    asked = {
        "Sceptics: fast diffusion is more than the same blur with nothing learned.": (
            "fast",
            CONTROL.label,
        ),
        "Content that chooses the scale is better than fixed weights.": ("mixed, gated", "mixed"),
    }
    others = [
        effect_claim(evidence, claim, difference(ours, other), MORE, what=f"{ours} − {other}")
        for claim, (ours, other) in asked.items()
        if {ours, other} <= set(evidence.variants)
    ]
    return [*in_order(paper), *in_order(others)]


def claims_by_position(evidence: Evidence) -> list[JudgedClaim]:
    """Judge the grid as the factorial that it is: scales over positions, and the reverse."""
    places = whole_places(evidence)
    if not places:
        return []
    mixes = [f"{place}, mixed" for place in places]
    singles = [f"{place}, {scale}" for place in places for scale in SCALES]
    mix = effect_claim(
        evidence,
        "Paper A: a mix of scales is better than one scale, over all positions.",
        average_difference(mixes, singles),
        MORE,
        what=f"mean of {len(mixes)} mixes − mean of {len(singles)} single scales",
    )
    first = effect_claim(
        evidence,
        "Paper A: diffusion after the embedding raises accuracy, over all scales.",
        main_effect(places[0]),
        MORE,
        what=f"mean of four scales {places[0]} − nothing placed",
    )
    return [*in_order([mix]), *in_order([first])]


def main_effect(place: str) -> dict[str, float]:
    """Return the weights of a position over all scales, against nothing placed."""
    return average_difference([f"{place}, {each}" for each in (*SCALES, "mixed")], [BASELINE.label])


def whole_places(evidence: Evidence) -> list[str]:
    """Return the positions that have every scale and the mix."""
    return [
        place
        for place in WORDS.values()
        if all(f"{place}, {each}" in evidence.variants for each in (*SCALES, "mixed"))
    ]


def factorial(evidence: Evidence) -> dict[str, list[dict[str, str]]]:
    """Return the main effect of each position over the scales, and of each scale over positions."""
    scores, places = scores_of(evidence), whole_places(evidence)
    asked = {f"{place}, all scales": main_effect(place) for place in places}
    if places:
        asked |= {
            f"{scale}, all positions": average_difference(
                [f"{place}, {scale}" for place in places], [BASELINE.label]
            )
            for scale in (*SCALES, "mixed")
        }
    rows = []
    for name, weights in asked.items():
        if all(variant in scores for variant in weights):
            values = differences_of(contrast(scores, weights))
            ends = format_interval(combined_interval(values), 2)
            rows.append(
                {"factor": name, "points [95 %]": f"{signed(combined_mean(values), 2)} {ends}"}
            )
    return {"as a factorial: mean difference from nothing placed": rows}


def _at(position: Position) -> list[Variant]:
    """Return every scale and their mix at one position."""
    words = WORDS[position]
    singles = [_single(name, position, f"{words}, {name}") for name in SCALES]
    return [*singles, _mixed(f"{words}, mixed", position, gated=False)]


EXPERIMENT = Experiment(
    name="multiscale",
    question=QUESTION,
    variants=(
        BASELINE,
        *(_single(name, Position.AFTER_EMBEDDING, name) for name in SCALES),
        _mixed("mixed", Position.AFTER_EMBEDDING, gated=False),
        _mixed("mixed, gated", Position.AFTER_EMBEDDING, gated=True),
        CONTROL,
    ),
    conclude=by_records(claims),
)
BY_POSITION = Experiment(
    name="multiscale-positions",
    question=f"{QUESTION} At every position, on ListOps.",
    variants=(BASELINE, *(variant for position in WORDS for variant in _at(position))),
    tasks=lambda scale: arena_tasks(scale)[:1],
    conclude=by_records(claims_by_position, factorial),
)
