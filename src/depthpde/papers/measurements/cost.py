"""Time, memory and parameters of a training step, as multiples of the bare model's.

Every ratio is a median of interleaved pairs: with, without, with, without … so that a noisy
neighbour on the machine hits both alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig


def measure(changes: Mapping[str, Any], length: int, rounds: int) -> dict[str, float]:
    """Return time, memory and parameters of a training step as multiples of the baseline's.

    Args:
        changes: Fields of the model's config that differ from the baseline's.
        length: Sites of a sequence.
        rounds: Interleaved pairs.
    """
    plain, placed = (_step(each, length) for each in ({}, changes))
    for step in (plain, placed):
        step()
    pairs = [(_seconds(placed), _seconds(plain)) for _ in range(rounds)]
    models = [_model(each, length) for each in ({}, changes)]
    bare, full = (_kept_bytes(model, _tokens(length)) for model in models)
    counts = [sum(each.numel() for each in model.parameters()) for model in models]
    return {
        "time": statistics.median(a / b for a, b in pairs),
        "memory": full / bare,
        "parameters": counts[1] / counts[0],
    }


def _model(changes: Mapping[str, Any], length: int) -> Classifier:
    shape: dict[str, Any] = {"vocabulary": 256, "length": length, "classes": 2}
    config = ModelConfig(**{"dim": 64, "blocks": 2, **shape, **changes})
    return Classifier(config, generator=torch.Generator().manual_seed(0)).to(device())


def _tokens(length: int) -> Tensor:
    shape = (_batch(length), length)
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(0)).to(device())


def _batch(length: int) -> int:
    return max(1, 8192 // length)


def device() -> str:
    """Return where costs are measured: on a GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _step(changes: Mapping[str, Any], length: int) -> Callable[[], None]:
    model, tokens = _model(changes, length), _tokens(length)

    def run() -> None:
        model.zero_grad(set_to_none=True)
        model(tokens).sum().backward()

    return run


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    if device() == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _kept_bytes(model: nn.Module, tokens: Tensor) -> int:
    """Count what autograd keeps of one forward pass for the backward pass, each storage once."""
    kept: dict[int, int] = {}

    def pack(each: Tensor) -> Tensor:
        storage = each.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return each

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda each: each):
        loss = model(tokens).sum()
    assert loss.requires_grad, "a training step"
    return sum(kept.values())
