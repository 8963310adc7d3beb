"""Every output of every module of a run, in order of execution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor that left one module."""

    module: str
    kind: str
    tensor: Tensor
    axis: int = -1
    """Where its sites are."""


Key = tuple[str, int, int]
"""A module's name, the number of its call, the number of the tensor in its output."""


class CallRecord:
    """Writes down every floating-point tensor that leaves a module, in order of execution."""

    def __init__(self) -> None:
        self.outputs: dict[Key, Output] = {}
        self.calls: dict[str, int] = {}

    def take(self) -> dict[Key, Output]:
        """Return what was written down since the last time, and begin anew."""
        taken, self.outputs, self.calls = self.outputs, {}, {}
        return taken

    def write(self, name: str, module: nn.Module, output: Any) -> None:
        """Write down what left a module."""
        call = self.calls[name] = self.calls.get(name, -1) + 1
        kind = type(module).__name__
        for k, tensor in enumerate(_tensors(output)):
            self.outputs[name, call, k] = Output(name or "(model)", kind, tensor.detach().clone())


@contextmanager
def recording(model: nn.Module) -> Iterator[CallRecord]:
    """Write down the outputs of every module while the context lasts."""
    record = CallRecord()
    handles = [
        module.register_forward_hook(
            lambda module, args, output, name=name: record.write(name, module, output)
        )
        for name, module in model.named_modules()
    ]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Run in eval mode without gradients, then put every module's mode back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        if output.is_floating_point() and not output.is_nested:
            yield output
    elif isinstance(output, Mapping):
        for each in output.values():
            yield from _tensors(each)
    elif isinstance(output, tuple | list):
        for each in output:
            yield from _tensors(each)
