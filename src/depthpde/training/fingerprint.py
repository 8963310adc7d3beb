"""Which run this is: a checkpoint of another is never taken up."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.data.reader import Split
from depthpde.training.config import TrainingConfig

_SAMPLE = 1 << 20


def identity(
    model: nn.Module, split: Split, validation: Split | None, config: TrainingConfig
) -> dict[str, Any]:
    """Return plain values that differ wherever the numbers of two runs must not be mixed.

    Data count by their labels, boundaries and first mebibyte of tokens; the prepared arrays have
    whole checksums of their own. First weights are compared apart (`weights_digest`).
    """
    about: dict[str, Any] = {
        "class": type(model).__name__,
        "config": {},
        "shapes": {name: list(each.shape) for name, each in model.state_dict().items()},
    }
    for name in ("config", "simulator"):  # the second says how a simulator integrates
        describe = getattr(getattr(model, name, None), "to_dict", None)
        if describe is not None:
            about[name] = describe()
    return {
        "training": config.to_dict(),
        "model": about,
        "data": {
            "training": _describe(split),
            "validation": None if validation is None else _describe(validation),
        },
    }


def weights_digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of named tensors, to the bit."""
    found = hashlib.sha256()
    for name, each in sorted(tensors.items()):
        found.update(f"{name}:{each.dtype}:{list(each.shape)}:".encode())
        found.update(each.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def _describe(split: Split) -> dict[str, Any]:
    found = hashlib.sha256()
    for column in (split.labels, split.pairs, split.offsets, split.tokens[:_SAMPLE]):
        if column is not None:
            found.update(column.tobytes())
    return {
        "split": split.name,
        "kind": split.kind.value,
        "length": split.length,
        "examples": len(split),
        "sha256": found.hexdigest(),
    }
