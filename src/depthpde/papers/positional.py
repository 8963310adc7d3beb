"""Does diffusion give a sense of place of its own, beside positional encodings?"""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.layers.embedding import Encoding
from depthpde.papers.placement import DIFFUSION
from depthpde.sweeps.grid import Plan, Variant
from depthpde.sweeps.scale import Scale, arena_tasks, bases_of

NAME = "positional"
QUESTION = "Is what diffusion gives independent of how a site knows its index?"


def plan(
    scale: Scale = Scale.MINI,
    *,
    seeds: int | Sequence[int] = 6,
    tasks: Sequence[str] | None = None,
) -> Plan:
    """Return every encoding with and without diffusion after the embedding."""
    variants = []
    for encoding in Encoding:
        words = f"{encoding.value} sites" if encoding is not Encoding.NONE else "no sites"
        bare = {"encoding": encoding.value}
        placed = bare | {"positions": ("after_embedding",), "layer": DIFFUSION}
        variants.append(Variant(words, f"nothing placed, {words}", model=bare))
        label = f"{words} + diffusion"
        variants.append(Variant(label, f"diffusion after the embedding, {words}", model=placed))
    return Plan(
        name=NAME,
        question=QUESTION,
        variants=variants,
        bases=bases_of(scale, tasks or arena_tasks(scale)[:2]),
        seeds=seeds,
        baseline="learned sites",
    )
