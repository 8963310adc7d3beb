"""From a person's examples to a prepared task: splits, one scale for every channel, a digest.

train 70 %, validation 10 %, test 20 %, every class by its share, where no split is given
v ← (v − mean) / deviation,    both of each channel of the training split
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from depthpde.data.own.examples import Examples
from depthpde.data.splits import stratified

if TYPE_CHECKING:
    from depthpde.data.writer import Writer

LEAST = 10
"""Fewer examples cannot be split three ways."""
DIGITS = 12
"""Hexadecimal digits of the digest that is the version of the arrays."""


@dataclass(frozen=True, slots=True)
class ExamplesRecipe:
    """Write labelled examples; those of a split that was not given are held out of the others."""

    splits: dict[str, Examples]

    def __call__(self, task: Any, request: Any, writer: Writer) -> None:
        """Write every split; called by `prepare`."""
        train = self.splits["train"]
        if train.channels is not None:
            mean, deviation = train.values.mean(axis=0), train.values.std(axis=0)
            deviation = np.where(deviation > 0, deviation, 1.0)
            writer.facts |= {"mean": mean.tolist(), "deviation": deviation.tolist()}
        writer.facts["classes"] = train.names
        for name, each in self.splits.items():
            values = each.values
            if train.channels is None:
                values = values.astype(np.uint8 if task.vocabulary <= 257 else np.uint32)
            else:
                values = ((values - mean) / deviation).astype(np.float32)
            writer.append(
                name, values.reshape(-1), each.lengths, each.labels, channels=train.channels or 1
            )


@dataclass(frozen=True, slots=True)
class TextRecipe:
    """Write one long text: first 90 % train, next 5 % validation, last 5 % test."""

    text: bytes

    @property
    def splits(self) -> dict[str, bytes]:
        """The text of each split."""
        first, second = (len(self.text) * share // 100 for share in (90, 95))
        return {
            "train": self.text[:first],
            "validation": self.text[first:second],
            "test": self.text[second:],
        }

    def __call__(self, task: Any, request: Any, writer: Writer) -> None:
        """Write every split; called by `prepare`."""
        for name, text in self.splits.items():
            writer.append(name, np.frombuffer(text, np.uint8), np.array([len(text)]), None)


def divide(train: Examples, given: dict[str, Examples], seed: int) -> dict[str, Examples]:
    """Return all three splits; what is not given is held out of the training examples.

    Args:
        train: The examples to divide.
        given: Splits that are fixed already, by name.
        seed: Of the choice.
    """
    found = dict(given)
    for name, share in (("test", 5), ("validation", 8)):
        if name in found:
            continue
        if len(train) < LEAST:
            raise ValueError(
                f"`x` must hold at least {LEAST} examples to hold out a {name} split, got "
                f"{len(train)}; give test= and validation= yourself"
            )
        kept, held = stratified(train.labels, max(1, len(train) // share), seed, name)
        found[name], train = train.take(held), train.take(kept)
    return {name: found.get(name, train) for name in ("train", "validation", "test")}


def version(splits: dict[str, Examples]) -> int:
    """Return a number that differs wherever the examples do: the head of their SHA-256."""
    found = hashlib.sha256()
    for name, each in splits.items():
        found.update(f"{name}:{each.values.dtype}:{each.values.shape}:{each.names}".encode())
        for column in (each.values, each.lengths, each.labels):
            found.update(np.ascontiguousarray(column).data)
    return int(found.hexdigest()[:DIGITS], 16)
