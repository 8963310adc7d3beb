"""CallBatch: the arguments of a model by name, and where their rows and sites are.

    values[key] : [rows, length, …]        mask : [rows, length], 1 = real token

A question asks for the same batch with other tokens, fewer rows, fewer sites or more padding; every
argument that belongs to the changed sequence changes with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from depthpde import seeds

Key = str | int
"""A named argument, or the number of a positional one."""

REAL_MASKS = ("attention_mask", "valid_mask")
"""Arguments that are 1 or True at real tokens."""
PADDING_MASKS = ("key_padding_mask", "src_key_padding_mask")
"""Arguments that are True at padding, as torch has it."""
WITHOUT_SITES = ("pixel_values", "input_values", "input_features", "pixel_values_videos")
"""Inputs whose axis 1 is no axis of sites that outputs share."""
FIRST = ("input_ids", "inputs_embeds", "input_values", "input_features", "pixel_values")
FEWEST_SITES = 4


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """One input that has sites."""

    key: Key
    """Which argument holds its tokens [rows, length] or its field [rows, length, dim]."""
    length: int
    mask: str | None
    """The argument that says which of its sites are real; None if the model takes none."""

    @property
    def decoder(self) -> bool:
        """Whether it is what a decoder reads beside an encoder."""
        return str(self.key).startswith("decoder_")


@dataclass(frozen=True, kw_only=True)
class CallBatch:
    """What a model is called with."""

    values: dict[Key, Any]
    key: Key
    """The argument that changes from row to row."""
    rows: int
    sequences: tuple[Sequence, ...]
    """The decoder's last; empty for images and sound."""
    accepts: frozenset[str]
    """Names of the model's arguments."""
    tokens: tuple[int, ...]
    """Ids with no meaning of their own."""
    packed: bool = False
    """Whether it came with positions that begin anew inside a row: packed documents."""
    length_axis: int = 1
    """Where the model itself has the sites of `key`; here they stand on axis 1."""

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and named arguments of the call."""
        values = self.values
        if self.length_axis != 1:
            values = {**values, self.key: values[self.key].movedim(1, self.length_axis)}
        numbers = sorted(key for key in values if isinstance(key, int))
        named = {key: each for key, each in values.items() if isinstance(key, str)}
        return tuple(values[k] for k in numbers), named

    def having(self, values: Mapping[Key, Any]) -> CallBatch:
        """Return the batch with other values; one that is None is left out."""
        merged = {**self.values, **values}
        return replace(self, values={k: v for k, v in merged.items() if v is not None})

    def narrowed(self, rows: slice) -> CallBatch:
        """Return some of the rows."""
        values = {
            key: each[rows] if _has_rows(each, self.rows) else each
            for key, each in self.values.items()
        }
        return replace(self, values=values, rows=len(range(self.rows)[rows]))

    def cut(self, sequence: Sequence, sites: slice, *, pairs: bool = False) -> CallBatch:
        """Return some of the sites of one sequence.

        Args:
            sequence: Which of the inputs shrinks.
            sites: Those that are kept.
            pairs: Whether a square argument, as many rows as sites, is a mask of attention.
        """
        values, along = dict(self.values), self._along(sequence)
        for key, each in self.values.items():
            square = isinstance(each, Tensor) and each.shape[-2:] == (sequence.length,) * 2
            if square and key != sequence.key and (pairs or key not in along):
                values[key] = each[..., sites, sites]
            elif key in along:
                values[key] = each[:, sites]
        length = len(range(sequence.length)[sites])
        return replace(self, values=values, sequences=self._other_length(sequence, length))

    def changed(self, key: Key, where: Tensor, seed: int = 1) -> CallBatch:
        """Return the batch with other contents where a mask [rows, length or 1] is True."""
        given = self.values[key]
        draw = seeds.generator(seed, "audit")
        if given.is_floating_point():
            other = given + (1 + torch.randn(given.shape, generator=draw).to(given))
        else:
            other = self._other_tokens(given, draw)
        where = where.to(given.device)
        where = where.view(*where.shape, *[1] * (given.ndim - where.ndim))
        return self.having({key: torch.where(where, other, given)})

    def padded(self, sequence: Sequence, left: int, right: int, *, mark: Tensor) -> CallBatch:
        """Return the batch with sites added on either side, not real where `mark` is True.

        Args:
            sequence: Which of the inputs grows.
            left: Sites added before the first.
            right: Sites added behind the last.
            mark: [rows, left + length + right], True = padding.
        """
        values = dict(self.values)
        for key in self._along(sequence):
            each = values[key]
            front, back = each[:, :1], each[:, -1:]
            shape = [-1] * each.ndim
            shape[1] = left
            front = front.expand(shape)
            shape[1] = right
            values[key] = torch.cat([front, each, back.expand(shape)], dim=1)
        longer = left + sequence.length + right
        grown = replace(self, values=values, sequences=self._other_length(sequence, longer))
        mark = mark.to(values[sequence.key].device)
        fresh = torch.ones(self.rows, longer, dtype=torch.bool)
        fresh[:, left : left + sequence.length] = False
        grown = grown.changed(sequence.key, fresh, seed=7)
        return grown if sequence.mask is None else grown.masked(sequence, ~mark)

    def masked(self, sequence: Sequence, real: Tensor) -> CallBatch:
        """Return the batch with a mask that is True at real tokens."""
        name = str(sequence.mask)
        if name in PADDING_MASKS:
            return self.having({name: ~real})
        given = self.values.get(name)
        whole = torch.bool if name == "valid_mask" else torch.long
        return self.having({name: real.to(given.dtype if isinstance(given, Tensor) else whole)})

    def _along(self, sequence: Sequence) -> list[Key]:
        """List the arguments that have an entry for each site of a sequence."""
        found = []
        for key, each in self.values.items():
            decoder = str(key).startswith("decoder_")
            if not isinstance(each, Tensor) or decoder != sequence.decoder or each.ndim < 2:
                continue
            if key == sequence.key or each.shape[:2] == (self.rows, sequence.length):
                found.append(key)
        return found

    def _other_length(self, sequence: Sequence, length: int) -> tuple[Sequence, ...]:
        return tuple(
            replace(each, length=length) if each.key == sequence.key else each
            for each in self.sequences
        )

    def _other_tokens(self, given: Tensor, draw: torch.Generator) -> Tensor:
        known = torch.tensor(self.tokens)
        first = torch.randint(len(known), given.shape, generator=draw)
        drawn = known[first].to(given)
        spare = known[(first + 1) % len(known)].to(given)
        return torch.where(drawn == given, spare, drawn)


def read_batch(model: nn.Module, given: Any) -> CallBatch:
    """Name the arguments, drop padding and labels, and see to it that there are two rows.

    Args:
        model: What is called.
        given: One tensor, or the positional or named arguments.
    """
    values, accepts = by_name(model, given)
    places = values.get("position_ids")
    packed = isinstance(places, Tensor) and places.ndim == 2 and bool((places.diff() < 0).any())
    for name in ("labels", "targets", "position_ids", "past_key_values"):
        values.pop(name, None)
    key = _first_input(values)
    batch = CallBatch(
        values=values,
        key=key,
        rows=values[key].shape[0],
        sequences=(),
        accepts=accepts,
        tokens=ordinary_tokens(model, values),
        packed=packed,
    )
    sequences = tuple(_sequences(batch))
    batch = _without_padding(replace(batch, sequences=sequences))
    for each in batch.sequences:
        if each.length < FEWEST_SITES:
            raise ValueError(
                f"`batch` must have at least {FEWEST_SITES} real sites in every row, got "
                f"{each.length} in {each.key!r}; give longer sequences"
            )
    return batch if batch.rows > 1 else _doubled(batch)


def given_values(given: Any) -> list[Any]:
    """List what a model is called with, or refuse what is no batch."""
    if isinstance(given, Tensor):
        return [given]
    if not isinstance(given, tuple | list | Mapping):
        raise ValueError(
            "`batch` must be a tensor, a tuple or a mapping of the model's arguments, "
            f"got {type(given).__name__}"
        )
    return list(given.values()) if isinstance(given, Mapping) else list(given)


def by_name(model: nn.Module, given: Any) -> tuple[dict[Key, Any], frozenset[str]]:
    """Return a batch by the names of the model's arguments, and those names.

    Args:
        model: Its signature is read.
        given: One tensor, or the positional or named arguments.
    """
    kinds = inspect.signature(model.forward).parameters
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    accepts = frozenset(name for name, each in kinds.items() if each.kind in plain)
    if isinstance(given, Mapping):
        return dict(given), accepts
    names = [name for name in kinds if name in accepts]
    listed = given_values(given)
    fits = len(listed) <= len(names)  # else some belong to *args, and all stay where they are
    values: dict[Key, Any] = {names[k] if fits else k: each for k, each in enumerate(listed)}
    return {key: each for key, each in values.items() if each is not None}, accepts


def _first_input(values: Mapping[Key, Any]) -> Key:
    ordered = sorted(values, key=lambda key: FIRST.index(key) if key in FIRST else len(FIRST))
    for key in ordered:
        each = values[key]
        if isinstance(each, Tensor) and each.ndim > 1 and each.dtype != torch.bool:
            return key
    raise ValueError(
        "`batch` must hold tokens [batch, length], a field [batch, length, dim], images or sound, "
        "got no tensor with two axes"
    )


def _sequences(batch: CallBatch) -> Iterable[Sequence]:
    for key, prefix in ((batch.key, ""), ("decoder_input_ids", "decoder_")):
        each = batch.values.get(key)
        if not isinstance(each, Tensor) or each.ndim not in (2, 3) or key in WITHOUT_SITES:
            continue
        if each.ndim == 2 and each.is_floating_point():
            continue
        masks = [prefix + name for name in (*REAL_MASKS, *PADDING_MASKS)]
        mask = next((name for name in masks if name in batch.accepts), None)
        yield Sequence(key=key, length=each.shape[1], mask=mask)


def _without_padding(batch: CallBatch) -> CallBatch:
    """Keep the real tokens of every row, as many as the shortest row has."""
    for sequence in batch.sequences:
        mask = batch.values.get(sequence.mask or "")
        if not isinstance(mask, Tensor) or mask.shape != (batch.rows, sequence.length):
            continue
        real = ~mask.bool() if sequence.mask in PADDING_MASKS else mask.bool()
        if bool(real.all()):
            continue
        fewest = int(real.sum(dim=1).min())
        index = torch.stack([torch.nonzero(row)[:fewest, 0] for row in real])
        rows = torch.arange(batch.rows, device=index.device)[:, None]
        values = {key: batch.values[key][rows, index] for key in batch._along(sequence)}
        batch = batch.having(values)
        batch = replace(batch, sequences=batch._other_length(sequence, fewest))
    return batch


def _doubled(batch: CallBatch) -> CallBatch:
    """Give a single row a neighbour."""
    twice = {
        key: torch.cat([each, each]) if _has_rows(each, 1) else each
        for key, each in batch.values.items()
    }
    second = torch.tensor([[False], [True]])
    return replace(batch, values=twice, rows=2).changed(batch.key, second)


def _has_rows(value: Any, rows: int) -> bool:
    return isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == rows


def ordinary_tokens(model: nn.Module, values: Mapping[Key, Any]) -> tuple[int, ...]:
    """List ids that a model reads as words: in every table, and no mark of its config.

    Args:
        model: Its tables and its config are read.
        values: The arguments; the first of integers holds tokens.
    """
    tensors = (each for each in values.values() if isinstance(each, Tensor) and each.ndim > 1)
    given = next((each for each in tensors if each.dtype in (torch.long, torch.int)), None)
    if given is None:
        return ()
    least = int(given.max()) + 1
    tables = [each.num_embeddings for each in model.modules() if isinstance(each, nn.Embedding)]
    most = min((size for size in tables if size >= least), default=max(least, 2))
    config = getattr(model, "config", None)
    marks = {
        value
        for name, value in vars(config).items()
        if name.endswith(("_token_id", "_token_index")) and isinstance(value, int)
    } if hasattr(config, "__dict__") else set()  # fmt: skip
    words = [token for token in range(min(most, 4096)) if token not in marks]
    return tuple(words if len(words) > 1 else range(most))
