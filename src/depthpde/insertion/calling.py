"""Call somebody's model and leave no trace: its modes, its random numbers and its gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.errors import check_module


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Run in eval mode without gradients; put modes and random numbers back, whatever happens."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.random.fork_rng(devices=_cuda(model)), torch.no_grad():
            model.eval()
            yield
    finally:
        for module, mode in modes:
            module.training = mode


class CallError(ValueError):
    """A model cannot be called with what it was given."""


def call_model(
    model: nn.Module,
    args: tuple[Any, ...],
    named: dict[str, Any],
    *,
    weights: dict[str, Tensor] | None = None,
    name: str = "batch",
) -> Any:
    """Call a model; if it cannot take the batch, say so in one sentence.

    Args:
        model: The model.
        args: Its positional arguments.
        named: Its named arguments.
        weights: Tensors that stand in the place of its weights during the call.
        name: What the caller's own argument is called.
    """
    try:
        if weights:
            return torch.func.functional_call(model, weights, args, named)
        return model(*args, **named)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        why = next((line for line in str(error).splitlines() if line.strip()), "no reason")
        raise CallError(
            f"`{name}` must be something {type(model).__name__} can be called with, got "
            f"{type(error).__name__} from its forward: {why.strip()}; call the model with the "
            "same arguments yourself first"
        ) from error


def arguments(batch: Any, *, name: str = "batch") -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Read a batch as the positional and named arguments of a model.

    Args:
        batch: One tensor, or positional or named arguments.
        name: What the caller's own argument is called.
    """
    if isinstance(batch, Tensor):
        return (batch,), {}
    if isinstance(batch, Mapping):
        return (), dict(batch)
    if isinstance(batch, tuple | list):
        return tuple(batch), {}
    raise ValueError(
        f"`{name}` must be a tensor, a tuple or a mapping of the model's arguments, "
        f"got {type(batch).__name__}"
    )


def check_batch(model: nn.Module, values: Iterable[Any], *, name: str) -> None:
    """Refuse a batch that is empty or lies elsewhere than the model.

    Args:
        model: The model.
        values: Everything it is called with.
        name: What the caller's own argument is called.
    """
    tensors = [each for each in values if isinstance(each, Tensor)]
    if not tensors:
        raise ValueError(f"`{name}` must hold at least one tensor, got none")
    for tensor in tensors:
        if tensor.numel() == 0:
            raise ValueError(
                f"`{name}` must hold at least one sequence, got a tensor of shape "
                f"{list(tensor.shape)}"
            )
    weight = next(model.parameters(), None)
    for tensor in tensors:
        if weight is not None and tensor.device != weight.device:
            raise ValueError(
                f"`{name}` must be on the model's device {weight.device}, got {tensor.device}; "
                f"move it with .to({str(weight.device)!r})"
            )


def check_has_weights(model: nn.Module, doing: str) -> None:
    """Refuse a model on the meta device: its weights have shapes but no values.

    Args:
        model: The model.
        doing: What was asked for.
    """
    check_module("model", model)
    for name, weight in (*model.named_parameters(), *model.named_buffers()):
        if weight.is_meta:
            raise ValueError(
                f"`model` must have weights when {doing}, got {name!r} on the meta device; give "
                "it values first: model.to_empty(device=…), then load_state_dict"
            )


def _cuda(model: nn.Module) -> list[torch.device]:
    devices = {each.device for each in model.parameters()}
    return [device for device in devices if device.type == "cuda"]
