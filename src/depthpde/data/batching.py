"""Batches: length buckets, padding, masks, and an order that can be taken up at any batch.

The order of an epoch is a function of (seed, epoch) alone. Examples are shuffled, sorted into
buckets of similar length, cut into batches, and the batches shuffled; what is left over in the
buckets is batched together, so every example comes exactly once an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from depthpde.data.counter import bits, permutation
from depthpde.data.reader import Split
from depthpde.data.task import TaskKind
from depthpde.data.writer import Array
from depthpde.errors import check_positive
from depthpde.seeds import derive

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_GROWTH = 1.08
_STEP = 8


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch on the CPU, or wherever ``to`` moved it."""

    tokens: Tensor
    """[batch, length] token ids, 0 where padded; [batch, length, channels] for real numbers."""
    valid_mask: Tensor | None
    """[batch, length] True = real token; None for windows of a text, which have no padding."""
    labels: Tensor
    """[batch]; [batch, length] next tokens for a language task."""
    second_tokens: Tensor | None = None
    """[batch, length] the other document of a pair."""
    second_mask: Tensor | None = None
    """[batch, length] its mask."""

    def __len__(self) -> int:
        return int(self.tokens.shape[0])

    def real_tokens(self) -> int:
        """Return how many tokens are no padding, of both documents where there are two."""
        first = self.tokens.numel() if self.valid_mask is None else int(self.valid_mask.sum())
        return first + (0 if self.second_mask is None else int(self.second_mask.sum()))

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on a device."""
        moved = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: each.to(device) for name, each in moved.items() if each is not None}
        )


class Cursor(NamedTuple):
    """The state of a stream of batches: the batch that comes next.

    >>> batches = dp.Batches(dp.load("listops-mini", "train"), batch_size=8)
    >>> cursor, batch = next(batches.stream(dp.Cursor(epoch=1, batch=2)))
    """

    epoch: int = 0
    batch: int = 0


class Part(NamedTuple):
    """What goes into one batch."""

    indices: Array
    """Examples; start sites of the windows of a language task."""
    width: int
    """Length they are padded to."""


class Batches:
    """The batches of one split.

    >>> batches = dp.Batches(dp.load("listops-mini", "train"), batch_size=8)
    >>> cursor, batch = next(batches.stream())
    >>> batch.tokens.shape == batch.valid_mask.shape
    True

    Args:
        split: A loaded split.
        batch_size: Examples in a batch; one batch of an epoch may have fewer.
        seed: Seed of the order.
    """

    def __init__(self, split: Split, batch_size: int = 32, *, seed: int = 0) -> None:
        self.split = split
        self.batch_size = check_positive("batch_size", batch_size)
        self.seed = seed
        if not len(split):
            raise ValueError(
                f"`split` must hold at least one example, got an empty {split.name}; "
                "prepare the task again"
            )
        self._lengths = None if split.kind is TaskKind.LANGUAGE else split.lengths()

    def plan(self, epoch: int) -> list[Part]:
        """Return what goes into every batch of an epoch, in order."""
        key = derive(self.seed, "order", self.split.name, epoch)
        if self._lengths is None:
            return self._windows(int(bits(key, 1)[0] % np.uint64(self.split.length)), key)
        order = permutation(key, len(self.split))
        widths = self._widths()[order]
        full, left = [], []
        for width in np.unique(widths):
            members = order[widths == width]
            whole = len(members) // self.batch_size * self.batch_size
            full += [Part(each, int(width)) for each in self._cut(members[:whole])]
            left.append(members[whole:])
        padded = self._widths()
        rest = [Part(each, int(padded[each].max())) for each in self._cut(np.concatenate(left))]
        parts = full + rest
        shuffle = permutation(derive(self.seed, "batches", self.split.name, epoch), len(parts))
        return [parts[index] for index in shuffle]

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from batch ``start`` on."""
        for part in self.plan(epoch)[start:]:
            yield self.fill(part)

    def stream(self, cursor: Cursor | None = None) -> Iterator[tuple[Cursor, Batch]]:
        """Yield batches without end, each with the cursor of the batch after it.

        Save that cursor with a checkpoint, and hand it back here to go on as if never stopped.
        """
        epoch, start = cursor or Cursor()
        while True:
            plan = self.plan(epoch)
            if not 0 <= start <= len(plan):
                raise ValueError(
                    f"`cursor` must point at a batch 0 … {len(plan)} of epoch {epoch}, got "
                    f"{start}; use the seed and batch size it was saved with"
                )
            for index in range(start, len(plan)):
                yield Cursor(epoch, index + 1), self.fill(plan[index])
            epoch, start = epoch + 1, 0

    def once(self) -> Iterator[Batch]:
        """Yield every example once, by length: the fixed order of an evaluation."""
        if self._lengths is None:
            for part in self._windows(0, None):
                yield self.fill(part)
            return
        widths = self._widths()
        for each in self._cut(np.argsort(widths, kind="stable")):
            yield self.fill(Part(each, int(widths[each].max())))

    def waste(self, epoch: int = 0) -> float:
        """Return the share of padding among all tokens of an epoch."""
        if self._lengths is None:
            return 0.0
        parts = self.plan(epoch)
        padded = sum(part.width * len(part.indices) for part in parts)
        return 1.0 - float(self._lengths.sum()) / padded

    def fill(self, part: Part) -> Batch:
        """Copy the tokens of a part out of the memory maps, and pad them."""
        import torch

        split = self.split
        if split.kind is TaskKind.LANGUAGE:
            spans = part.indices[:, None] + np.arange(part.width + 1)
            ids = split.tokens[spans].astype(np.int64) + split.shift
            tokens = torch.from_numpy(np.ascontiguousarray(ids[:, :-1]))
            after = torch.from_numpy(np.ascontiguousarray(ids[:, 1:]))
            return Batch(tokens, None, after)
        assert split.labels is not None, "only language tasks have no labels"
        labels = torch.from_numpy(split.labels[part.indices].astype(np.int64))
        if split.pairs is None:
            return Batch(*self._pad(part.indices, part.width), labels)
        chosen = split.pairs[part.indices].astype(np.int64)
        first, second = (self._pad(chosen[:, side], part.width) for side in (0, 1))
        return Batch(*first, labels, *second)

    def _pad(self, sequences: Array, width: int) -> tuple[Tensor, Tensor]:
        import torch

        split = self.split
        starts, ends = split.offsets[sequences], split.offsets[sequences + 1]
        shape: tuple[int, ...] = (len(sequences), width)
        shape += () if split.channels is None else (split.channels,)
        tokens = np.zeros(shape, dtype=np.int64 if split.channels is None else np.float32)
        for row, start, end in zip(tokens, starts.tolist(), ends.tolist(), strict=True):
            row[: end - start] = split.tokens[start:end]
        valid = np.arange(width) < (ends - starts)[:, None]
        if split.shift:
            tokens += split.shift * valid
        if split.mask_zero_pixels:
            valid = valid & (tokens > 0)
        return torch.from_numpy(tokens), torch.from_numpy(valid)

    def _widths(self) -> Array:
        """Return the length each example is padded to."""
        assert self._lengths is not None, "windows are not padded"
        if self.split.padding is not None:
            return np.full(len(self._lengths), self.split.padding, dtype=np.int64)
        edges = bucket_edges(self.split.length)
        return edges[np.searchsorted(edges, self._lengths)]

    def _windows(self, phase: int, key: int | None) -> list[Part]:
        """Cut a text into windows from a phase on, in text order or shuffled by a key."""
        length = self.split.length
        phase = min(phase, max(0, len(self.split.tokens) - 1 - length))
        count = (len(self.split.tokens) - 1 - phase) // length
        order = np.arange(count) if key is None else permutation(key, count)
        return [Part(each, length) for each in self._cut(phase + order * length)]

    def _cut(self, indices: Array) -> list[Array]:
        return [
            indices[start : start + self.batch_size]
            for start in range(0, len(indices), self.batch_size)
        ]


def bucket_edges(longest: int) -> Array:
    """Return the lengths batches are padded to: multiples of 8, each at most 8 % above the last.

    A sequence wastes less than 8 % or 8 tokens, whichever is more; the last edge is ``longest``.
    """
    edges = [min(_STEP, longest)]
    while edges[-1] < longest:
        grown = int(edges[-1] * _GROWTH) // _STEP * _STEP
        edges.append(min(longest, max(edges[-1] + _STEP, grown)))
    return np.array(edges, dtype=np.int64)
