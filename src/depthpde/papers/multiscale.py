"""Is a mix of scales better than one scale under the same bound?"""

from __future__ import annotations

from depthpde.models.position import Position
from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.judgement import effect
from depthpde.papers.placement import BASELINE, BOUND, DIFFUSION, START, WORDS
from depthpde.records.evidence import Evidence, over_all
from depthpde.records.findings import JudgedClaim
from depthpde.records.run_model import SCALES
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
    """Judge a mix of scales against every single one."""
    singles = [each for each in SCALES if each in evidence.variants]
    found = [
        effect(
            evidence,
            f"Paper A: a mix of scales is better than {single} diffusion alone.",
            "mixed",
            0.1,
            against=single,
        )
        for single in singles
    ]
    if "mixed, gated" in evidence.variants:
        found.append(
            effect(
                evidence,
                "Content that chooses the scale is better than fixed weights.",
                "mixed, gated",
                0.1,
                against="mixed",
            )
        )
    if CONTROL.label in evidence.variants:
        found.append(
            effect(
                evidence,
                "Sceptics: fast diffusion is more than the same blur with nothing learned.",
                "fast",
                0.1,
                against=CONTROL.label,
            )
        )
    return found


def claims_by_position(evidence: Evidence) -> list[JudgedClaim]:
    """Judge a mix of scales against the best single one of its position."""
    judged = []
    found = over_all(evidence)
    for mixed in (each for each in evidence.variants if each.endswith(", mixed")):
        place = mixed.removesuffix(", mixed")
        singles = [f"{place}, {each}" for each in SCALES]
        known = [each for each in singles if each in found]
        if not known:
            continue
        rival = max(known, key=lambda each: found[each].mean)
        judged.append(
            effect(
                evidence,
                f"Paper A: a mix of scales is the best choice {place}.",
                mixed,
                0.1,
                against=rival,
                what=f"{place}, mixed against the best single scale there, {rival}",
            )
        )
    return judged


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
    conclude=by_records(claims_by_position),
)
