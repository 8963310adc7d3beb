"""Every output of every module of a run, in order of execution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from depthpde.insertion.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor that left one module."""

    module: str
    kind: str
    tensor: Tensor
    axes: tuple[int, ...] = ()
    """Where its sites are; several where it cannot be told which axis is meant."""


Key = tuple[str, int, int]
"""A module's name, the number of its call, the number of the tensor in its output."""


class CallRecord:
    """Every floating-point tensor that left a module, in order of execution."""

    def __init__(self) -> None:
        self.outputs: dict[Key, Output] = {}
        self.calls: dict[str, int] = {}

    def take(self) -> dict[Key, Output]:
        """Return what was recorded since the last time, and begin anew."""
        taken, self.outputs, self.calls = self.outputs, {}, {}
        return taken

    def write(self, name: str, kind: str, output: Any) -> None:
        """Record what left a module."""
        call = self.calls[name] = self.calls.get(name, -1) + 1
        for k, tensor in enumerate(_tensors(output)):
            self.outputs[name, call, k] = Output(name or "(model)", kind, tensor.detach().clone())


@contextmanager
def recording(model: nn.Module) -> Iterator[CallRecord]:
    """Record the outputs of every module while the context lasts."""
    record = CallRecord()
    with Recorder() as recorder:
        for name, module in model.named_modules():
            recorder.on_output(module, partial(record.write, name, type(module).__name__))
        yield record


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
