"""Does diffusion give a sense of place of its own, beside positional encodings?"""

from __future__ import annotations

from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.judgement import effect
from depthpde.papers.placement import DIFFUSION
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
    """Judge diffusion against none, encoding by encoding."""
    bare = [each for each in evidence.variants if f"{each} + diffusion" in evidence.variants]
    return [
        effect(
            evidence,
            f"Paper A: diffusion adds to positional encodings; with {each} too.",
            f"{each} + diffusion",
            0.1,
            against=each,
            what=f"diffusion against none, {each}",
        )
        for each in bare
    ]


EXPERIMENT = Experiment(
    name="positional",
    question="Is what diffusion gives independent of how a site knows its index?",
    variants=tuple(variants()),
    baseline=ENCODINGS["learned"],
    tasks=lambda scale: arena_tasks(scale)[:2],
    conclude=by_records(claims),
)
