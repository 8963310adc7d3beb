"""What people have (arrays, tensors, lists, data sets) as examples end to end, checked once.

tokens    whole numbers [n, length], or n sequences of their own length; words are read as bytes
series    real numbers [n, length] or [n, length, channels], or n series of their own length
images    bytes [n, height, width(, channels)], or real numbers [n, height, width, channels]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from depthpde.data.own.labels import read_labels

Array = npt.NDArray[Any]
_INPUTS = ("input_ids", "tokens", "values", "x", "text", "sentence", "image", "img", "pixel_values")
_LABELS = ("label", "labels", "y", "target")
_PLANES = (1, 3, 4)
"""Channels that an image usually has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """Labelled examples of one split, end to end."""

    values: Array
    """Symbols [sites], or real numbers [sites, channels]."""
    lengths: Array
    """Sites of each example."""
    labels: Array
    """Class of each example."""
    names: list[str]
    """What each class is called."""
    grid: tuple[int, int] | None = None
    """Rows and columns of an image."""

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def channels(self) -> int | None:
        """Real numbers at each site; None for symbols."""
        return self.values.shape[1] if self.values.ndim == 2 else None

    def take(self, chosen: Array) -> Examples:
        """Return some of the examples, in the order given."""
        ends = np.cumsum(self.lengths)
        spans = [np.arange(ends[k] - self.lengths[k], ends[k]) for k in chosen]
        return Examples(
            values=self.values[np.concatenate(spans)],
            lengths=self.lengths[chosen],
            labels=self.labels[chosen],
            names=self.names,
            grid=self.grid,
        )


def read_examples(x: Any, y: Any = None, *, like: Examples | None = None) -> Examples:
    """Return what a person hands over as examples, or say in one line what is wrong with it.

    >>> found = read_examples([[0.1, 0.2], [0.3, 0.1]], ["up", "down"])
    >>> found.channels, found.lengths.tolist()
    (1, [2, 2])

    Args:
        x: Arrays, tensors or lists; or a data set of PyTorch or Hugging Face that has the labels.
        y: One label for each example; None where `x` is a data set.
        like: Examples of the training split, whose classes and shape these must share.
    """
    inputs, given, mask = _opened(x) if y is None else (x, y, None)
    labels, names = read_labels(given, like.names if like else None)
    if len(inputs) != len(labels):
        raise ValueError(
            f"`x` and `y` must be of one length, got {len(inputs)} examples and {len(labels)} "
            "labels; give one label for each example"
        )
    values, lengths, grid = _flat(inputs, mask)
    found = Examples(values=values, lengths=lengths, labels=labels, names=names, grid=grid)
    _check(found, like)
    return found


def _opened(data: Any) -> tuple[Any, Any, Any]:
    """Return inputs, labels and mask of a data set."""
    columns = getattr(data, "column_names", None)
    if isinstance(columns, Sequence) or isinstance(data, Mapping):
        return _columns(data, list(data if columns is None else columns))
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        raise ValueError(
            f"`y` must be given for {type(data).__name__}: only a data set of (input, label) pairs "
            "or one with named columns has labels of its own"
        )
    items = [data[k] for k in range(len(data))]
    pairs = all(isinstance(each, tuple | list) and len(each) == 2 for each in items)
    if not items or not pairs:
        raise ValueError(
            "`x` must yield (input, label) pairs where `y` is not given, got "
            f"{type(items[0]).__name__ if items else 'nothing'}; give y, one label an example"
        )
    return [each for each, _ in items], np.array([_number(each) for _, each in items]), None


def _columns(data: Any, columns: list[str]) -> tuple[Any, Any, Any]:
    chosen = {
        kind: next((name for name in names if name in columns), None)
        for kind, names in (("input", _INPUTS), ("label", _LABELS), ("mask", ("attention_mask",)))
    }
    for kind, names in (("input", _INPUTS), ("label", _LABELS)):
        if chosen[kind] is None:
            raise ValueError(
                f"`x` must have a column of {kind}s, called {', '.join(names)}, got "
                f"{', '.join(columns)}; rename it, or give x and y as arrays"
            )
    inputs, labels, mask = (None if name is None else data[name] for name in chosen.values())
    assert inputs is not None, "named above"
    return list(inputs), np.asarray(labels), mask


def _number(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label


def _flat(inputs: Any, mask: Any) -> tuple[Array, Array, tuple[int, int] | None]:
    """Return all sites end to end, the length of each example, and the grid of images."""
    rows = [_row(each) for each in inputs]
    if mask is not None:
        kept = [np.asarray(each, dtype=bool) for each in mask]
        rows = [row[keep] for row, keep in zip(rows, kept, strict=True)]
    if not rows:
        raise ValueError("`x` must hold at least one example, got none; give [n, length, …]")
    empty = next((k for k, row in enumerate(rows) if not row.size), None)
    if empty is not None:
        raise ValueError(f"`x` must hold no empty example, got length 0 at {empty}; leave it out")
    shapes = {row.shape[1:] if row.ndim > 1 else () for row in rows}
    kinds = {"f" if row.dtype.kind == "f" else "i" for row in rows}
    if len(shapes) > 1 or len(kinds) > 1:
        raise ValueError(
            f"`x` must hold examples of one kind, got {len(shapes)} shapes and {len(kinds)} types "
            "of numbers; only the length may differ"
        )
    first = rows[0]
    images = first.ndim == 3 or (first.ndim == 2 and first.dtype == np.uint8)
    if first.ndim not in (1, 2, 3) or (first.ndim == 2 and not images and kinds == {"i"}):
        raise ValueError(
            "`x` must be tokens [n, length], series [n, length, channels] or images [n, height, "
            f"width, channels], got {first.dtype} of shape [n, "
            f"{', '.join(map(str, first.shape))}]; give real numbers for series, bytes for images"
        )
    grid = None
    if images:
        rows = [_upright(row) for row in rows]
        grid = (int(rows[0].shape[0]), int(rows[0].shape[1]))
        if {row.shape for row in rows} != {rows[0].shape}:
            raise ValueError(
                f"`x` must hold images of one size, got {len({r.shape for r in rows})} sizes; "
                "resize or pad them"
            )
        rows = [row.reshape(-1, row.shape[2]).astype(np.float32) for row in rows]
    elif kinds == {"f"}:
        rows = [row.reshape(len(row), -1).astype(np.float32) for row in rows]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return np.concatenate(rows), lengths, grid


def _row(example: Any) -> Array:
    if isinstance(example, str):
        return np.frombuffer(example.encode(), dtype=np.uint8)
    if isinstance(example, bytes):
        return np.frombuffer(example, dtype=np.uint8)
    found = np.asarray(example.numpy() if hasattr(example, "numpy") else example)
    if found.dtype.kind not in "iubf" or found.ndim == 0:
        raise ValueError(
            f"`x` must hold arrays of whole or real numbers, or words, got {type(example).__name__}"
            f" of {found.dtype}; turn each example into an array"
        )
    return found


def _upright(image: Array) -> Array:
    """Return an image as [height, width, channels], also one that has its channels first."""
    if image.ndim == 2:
        return image[..., None]
    first = image.shape[0] in _PLANES and image.shape[2] not in _PLANES
    return image.transpose(1, 2, 0) if first else image


def _check(found: Examples, like: Examples | None) -> None:
    values = found.values
    if found.channels is None and int(values.min()) < 0:
        raise ValueError(
            f"`x` must hold token ids of at least 0, got {int(values.min())}; cut padding off, or "
            "add a constant"
        )
    if found.channels is not None and not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).any(axis=1).sum())
        raise ValueError(
            f"`x` must hold finite numbers, got {bad} sites with NaN or infinity; fill or drop them"
        )
    if like is not None and (found.channels, found.grid) != (like.channels, like.grid):
        raise ValueError(
            f"`x` must be like the training examples, channels {like.channels} and grid "
            f"{like.grid}, got {found.channels} and {found.grid}; give all splits in one form"
        )
