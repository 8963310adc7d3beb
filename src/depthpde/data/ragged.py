"""Sequences of different lengths, end to end in one array of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from depthpde.data.writer import Array

UNKNOWN, END = 0, 1


@dataclass(frozen=True, slots=True)
class Ragged:
    """Symbols of many sequences end to end, and how many belong to each."""

    tokens: Array
    """uint8 symbols."""
    lengths: Array
    """int64, one for each sequence."""

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def offsets(self) -> Array:
        """Where each sequence starts, and the end."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def take(self, indices: Array) -> Ragged:
        """Return some of the sequences, in the order of the indices."""
        starts = self.offsets[:-1][indices]
        lengths = self.lengths[indices]
        before = np.cumsum(lengths) - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
        return Ragged(self.tokens[places], lengths)

    def cut(self, length: int) -> Ragged:
        """Return every sequence cut at a length, from its start."""
        lengths = np.minimum(self.lengths, length)
        within = np.arange(len(self.tokens)) - np.repeat(self.offsets[:-1], self.lengths)
        return Ragged(self.tokens[within < length], lengths)

    def ended(self, length: int) -> Ragged:
        """Return every sequence cut so that an end symbol fits, symbols moved up by two.

        Symbol 0 then stands for an unknown one, symbol 1 for the end.
        """
        short = self.cut(length - 1)
        if len(short.tokens) and short.tokens.max() > 253:
            raise ValueError("`tokens` must be below 254 to leave room for unknown and end symbols")
        tokens = np.insert(short.tokens + np.uint8(2), np.cumsum(short.lengths), END)
        return Ragged(tokens.astype(np.uint8), short.lengths + 1)


def ragged(sequences: Sequence[bytes]) -> Ragged:
    """Join byte strings; an empty one becomes a single line feed, so that no example is empty."""
    filled = [each or b"\n" for each in sequences]
    tokens = np.frombuffer(b"".join(filled), dtype=np.uint8)
    return Ragged(tokens, np.array([len(each) for each in filled], dtype=np.int64))


def rows(grid: Array) -> Ragged:
    """Join equally long sequences [count, length]."""
    return Ragged(grid.reshape(-1), np.full(len(grid), grid[0].size if len(grid) else 0, np.int64))
