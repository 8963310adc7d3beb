"""How one pool of labelled examples is divided into splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from depthpde.data.counter import permutation
from depthpde.data.protocol import ValidationSource
from depthpde.seeds import derive

Indices = npt.NDArray[np.int64]
Labels = npt.NDArray[Any]


def stratified(labels: Labels, count: int, seed: int, *names: str) -> tuple[Indices, Indices]:
    """Hold out ``count`` examples with every label's share kept, and return (rest, held out).

        held out of label c  =  ⌊count · n_c / n⌋ or one more        Σ_c = count

    The largest remainders get the one more. Both index lists are in file order.
    """
    if not 0 < count < len(labels):
        raise ValueError(
            f"`count` must be between 1 and {len(labels) - 1}, the examples less one, got {count}"
        )
    values, counts = np.unique(labels, return_counts=True)
    exact = counts * (count / len(labels))
    quota = np.floor(exact).astype(np.int64)
    short = count - int(quota.sum())
    quota[np.argsort(-(exact - quota), kind="stable")[:short]] += 1
    order = permutation(derive(seed, "held-out", *names), len(labels))
    held = np.concatenate(
        [order[labels[order] == value][:take] for value, take in zip(values, quota, strict=True)]
    )
    kept = np.ones(len(labels), dtype=bool)
    kept[held] = False
    return np.flatnonzero(kept), np.sort(held)


def hold_out(
    labels: Labels, count: int, validation: ValidationSource, seed: int, name: str
) -> tuple[Indices, Indices]:
    """Divide the training examples of a task by its protocol's rule, and return both parts."""
    if validation is ValidationSource.HELD_OUT:
        return stratified(labels, count, seed, name)
    if validation is ValidationSource.LAST:
        every = np.arange(len(labels), dtype=np.int64)
        return every[:-count], every[-count:]
    if validation is ValidationSource.RANDOM_42:
        order = _torch_42(len(labels))
        return order[:-count], order[-count:]
    raise ValueError(f"`validation` {validation.value!r} does not divide the training examples")


def _torch_42(count: int) -> Indices:
    """Return the order that ``random_split`` draws with a generator of seed 42."""
    import torch

    order: Indices = torch.randperm(count, generator=torch.Generator().manual_seed(42)).numpy()
    return order
