"""Labels of any kind as classes 0, 1, 2 …, and what each class is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_CLASSES = 256
"""A label is stored as one byte."""


def read_labels(y: Any, names: Sequence[str] | None = None) -> tuple[npt.NDArray[Any], list[str]]:
    """Return each label as a class, and the name of every class in sorted order.

    >>> classes, names = read_labels(["cat", "dog", "cat"])
    >>> classes.tolist(), names
    ([0, 1, 0], ['cat', 'dog'])

    Args:
        y: One label for each example: whole numbers, words or booleans.
        names: The classes that are known already, as for a test split; None reads them off.
    """
    labels = np.asarray(y.numpy() if hasattr(y, "numpy") else y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"`y` must hold one label for each example, [n], got {list(labels.shape)}; for one-hot "
            "labels give y.argmax(axis=1)"
        )
    if labels.dtype.kind not in "iubUS" and not _whole(labels):
        raise ValueError(
            f"`y` must be classes (whole numbers, words or booleans), got {labels.dtype} such as "
            f"{labels[0]!r}; round it or sort it into classes first"
        )
    if labels.dtype.kind == "f":
        labels = labels.astype(np.int64)
    found, classes = np.unique(labels, return_inverse=True)
    words = [str(each) for each in found.tolist()]
    if names is None:
        _check_number(words)
        return classes.astype(np.uint8), words
    unknown = [each for each in words if each not in names]
    if unknown:
        raise ValueError(
            f"`y` must hold classes of the training labels, {', '.join(names[:8])}, got "
            f"{unknown[0]!r}; give the training split an example of each class"
        )
    places = np.array([list(names).index(each) for each in words], dtype=np.uint8)
    return places[classes], list(names)


def _whole(labels: npt.NDArray[Any]) -> bool:
    return labels.dtype.kind == "f" and bool((labels == np.floor(labels)).all())


def _check_number(words: list[str]) -> None:
    if not 2 <= len(words) <= MOST_CLASSES:
        raise ValueError(
            f"`y` must hold 2 to {MOST_CLASSES} classes, got {len(words)}; give one class a number "
            "or a word"
        )
