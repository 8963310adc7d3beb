"""Recall: streams in which some symbols follow from what stood before, and the others from nothing.

    recall     k₁ v₁ … k₈ v₈ | q₁ v(q₁) … q₈ v(q₈)      each value again after its key
    copying    < s₁ … s₁₅ > s₁ … s₁₅                    each symbol once more

Episodes of 32 symbols stand one after the other; keys, values and symbols are drawn anew in each.
A window holds several, so a model reads its answers off its own context and off nothing else: no
table of the symbols before tells them. The share that can be told stands in the manifest.
"""

from __future__ import annotations

import numpy as np

from depthpde.data.counter import bits
from depthpde.data.recipes.corpora import baselines
from depthpde.data.task import Request, Task
from depthpde.data.writer import Array, Writer
from depthpde.seeds import derive

EPISODE = 32
PAIRS, NAMES = 8, 32
"""Pairs of an episode; keys and values there are to draw from."""
LETTERS = 64
OPEN, CLOSE = LETTERS, LETTERS + 1
"""The two marks of copying, after its symbols."""


def associative_recall(episodes: int, seed: int) -> Array:
    """Draw episodes of multi-query associative recall, [episodes, 32].

    Keys are 0 … 31, eight of them in each episode; values are 32 … 63. Queries are drawn from the
    episode's own keys, with repetition.

    Args:
        episodes: How many.
        seed: Seed of the stream; a larger count only adds episodes at the end.
    """
    drawn = _numbers(seed, "recall", episodes, NAMES + 2 * PAIRS)
    keys = np.argsort(drawn[:, :NAMES], axis=1, kind="stable")[:, :PAIRS]
    values = NAMES + (drawn[:, NAMES : NAMES + PAIRS] % NAMES).astype(np.int64)
    asked = (drawn[:, NAMES + PAIRS :] % PAIRS).astype(np.int64)
    pairs = np.stack((keys, values), axis=2)
    answers = np.take_along_axis(pairs, asked[:, :, None], axis=1)
    return np.concatenate((pairs, answers), axis=1).reshape(episodes, EPISODE).astype(np.uint8)


def copying(episodes: int, seed: int) -> Array:
    """Draw episodes of copying, [episodes, 32]: fifteen of 64 symbols between marks, and again.

    Args:
        episodes: How many.
        seed: Seed of the stream; a larger count only adds episodes at the end.
    """
    half = EPISODE // 2
    symbols = (_numbers(seed, "copying", episodes, half - 1) % LETTERS).astype(np.uint8)
    marks = np.full((episodes, 1), OPEN, np.uint8), np.full((episodes, 1), CLOSE, np.uint8)
    return np.concatenate((marks[0], symbols, marks[1], symbols), axis=1)


DRAW = {"recall-mini": associative_recall, "copying-mini": copying}
TOLD: dict[str, float] = {
    "recall-mini": 100 * (PAIRS + PAIRS / PAIRS) / EPISODE,
    "copying-mini": 100 * (EPISODE // 2 + 1 + (EPISODE // 2 - 1) / LETTERS) / EPISODE,
}
"""Percent of the symbols that a reader of the whole context tells: of recall all answers and one
query in eight, of copying the second half, the marks and 1/64 of the first."""


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Generate a stream: test first, then validation, then train."""
    request.log(f"{task.name}: drawing {sum(task.splits.values()):,} symbols")
    whole = -(-sum(task.splits.values()) // EPISODE)
    stream = DRAW[task.name](whole, request.seed).reshape(-1)
    start, parts = 0, {}
    for split in reversed(list(task.splits)):
        parts[split] = stream[start : start + task.splits[split]]
        start += task.splits[split]
        writer.append(split, parts[split], np.array([len(parts[split])]), None)
    writer.facts["baselines"] = baselines(parts["train"], parts["test"])
    writer.facts["told_by_the_context"] = round(TOLD[task.name], 2)


def _numbers(seed: int, name: str, episodes: int, each: int) -> Array:
    return bits(derive(seed, name), episodes * each).reshape(episodes, each)
