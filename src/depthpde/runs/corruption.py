"""A split with noise: pixels moved, symbols replaced, the same for every model.

images       g ← g + 255 · level · N(0, 1), rounded, kept in 0 … 255
sequences    a symbol is replaced with probability `level` by one drawn from all
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from depthpde.data.reader import Split
from depthpde.data.task import TaskKind
from depthpde.errors import check_range

GREY = 255


def corrupt(split: Split, level: float, *, seed: int = 0) -> Split:
    """Return a split whose symbols carry noise.

    Args:
        split: Of an image or a sequence task.
        level: Share of the grey scale that is one standard deviation, or of symbols replaced.
        seed: Of the noise.
    """
    share = check_range("level", level, 0.0, 1.0)
    random = np.random.default_rng(seed)
    stored = np.asarray(split.tokens)
    if split.kind is TaskKind.IMAGE:
        moved = stored + random.normal(scale=GREY * share, size=stored.shape)
        return replace(split, tokens=np.clip(np.rint(moved), 0, GREY).astype(stored.dtype))
    if split.kind is not TaskKind.SEQUENCE:
        raise ValueError(
            f"`corruption` must be of an image or a sequence task, got a {split.kind} task; leave "
            "it out"
        )
    drawn = random.integers(split.vocabulary - split.shift, size=stored.shape)
    hit = random.random(stored.shape) < share
    return replace(split, tokens=np.where(hit, drawn, stored).astype(stored.dtype))


def some_examples(split: Split, count: int) -> Split:
    """Return a part of a split at even distances: prepared examples may be sorted by label.

        k-th of n:  example ⌊k · size / n⌋

    Args:
        split: Of an image or a sequence task.
        count: How many.
    """
    if split.kind not in (TaskKind.IMAGE, TaskKind.SEQUENCE) or split.labels is None:
        raise ValueError(
            f"`examples` must be of an image or a sequence task, got a {split.kind} task; leave it "
            "out"
        )
    if count > len(split):
        raise ValueError(
            f"`examples` must be at most {len(split)}, all of the split, got {count}; leave it "
            "out to take all"
        )
    chosen = np.arange(count) * len(split) // count
    starts, ends = split.offsets[chosen], split.offsets[chosen + 1]
    tokens = np.concatenate([split.tokens[a:b] for a, b in zip(starts, ends, strict=True)])
    offsets = np.concatenate(([0], np.cumsum(ends - starts)))
    return replace(split, tokens=tokens, offsets=offsets, labels=split.labels[chosen])
