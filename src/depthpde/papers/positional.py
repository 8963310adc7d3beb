"""Does diffusion give a sense of place of its own, beside positional encodings?"""

from __future__ import annotations

from depthpde.papers.claims import effect_claim, in_order
from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.placement import DIFFUSION, MORE, SAME
from depthpde.records.contrasts import difference, interaction
from depthpde.records.evidence import Evidence
from depthpde.records.findings import JudgedClaim
from depthpde.sweeps.grid import Variant
from depthpde.sweeps.scale import arena_tasks

ENCODINGS = {
    "learned": "learned sites",
    "sinusoidal": "sinusoidal sites",
    "rotary": "rotary sites",
    "none": "no sites",
}
"""How a site knows its index, and what that is called."""


def variants() -> list[Variant]:
    """Return every encoding with and without diffusion after the embedding."""
    found = []
    for encoding, words in ENCODINGS.items():
        bare = {"encoding": encoding}
        placed = bare | {"positions": ("after_embedding",), "layer": DIFFUSION}
        found += [
            Variant(words, f"nothing placed, {words}", model=bare),
            Variant(
                f"{words} + diffusion", f"diffusion after the embedding, {words}", model=placed
            ),
        ]
    return found


def claims(evidence: Evidence) -> list[JudgedClaim]:
    """Judge diffusion against none, encoding by encoding; then whether the two are orthogonal."""
    bare = [each for each in evidence.variants if f"{each} + diffusion" in evidence.variants]
    adds = [
        effect_claim(
            evidence,
            f"Paper A: diffusion adds to positional encodings; with {each} too.",
            _gain(each),
            MORE,
            what=f"diffusion − none, {each}",
        )
        for each in bare
    ]
    none, learned = ENCODINGS["none"], ENCODINGS["learned"]
    if {none, learned} <= set(bare):
        adds.append(
            effect_claim(
                evidence,
                "Paper A: what diffusion adds is orthogonal to positional encodings (it does not "
                "depend on them).",
                interaction(_gain(none), _gain(learned)),
                SAME,
                what=f"gain with {none} − gain with {learned}",
            )
        )
    return in_order(adds)


def _gain(encoding: str) -> dict[str, float]:
    return difference(f"{encoding} + diffusion", encoding)


EXPERIMENT = Experiment(
    name="positional",
    question="Is what diffusion gives independent of how a site knows its index?",
    variants=tuple(variants()),
    baseline=ENCODINGS["learned"],
    tasks=lambda scale: arena_tasks(scale)[:2],
    conclude=by_records(claims),
)
