"""Does diffusion give a sense of place of its own, beside positional encodings?"""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.experiments.extent import Extent, arena_tasks, bases_of
from depthpde.experiments.grid import Plan, Variant
from depthpde.experiments.placement import DIFFUSION
from depthpde.layers.embedding import Encoding

NAME = "positional"
QUESTION = "Is what diffusion gives independent of how a site knows its index?"


def plan(
    extent: Extent = Extent.MINI,
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
        bases=bases_of(extent, tasks or arena_tasks(extent)[:2]),
        seeds=seeds,
        baseline="learned sites",
    )
