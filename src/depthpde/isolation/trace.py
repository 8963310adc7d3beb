"""The calls of all modules in one run as a tree: what entered, what left, what was called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn

from depthpde.insertion.recorder import Given, Recorder

Where = tuple[str, int, str, int]
"""A module's name, the number of its call, "in" or "out", the number of the tensor."""


@dataclass(slots=True)
class ModuleCall:
    """One call of one module."""

    name: str
    number: int
    """Of the call of this module within the call of the model."""
    kind: str
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    children: list[ModuleCall] = field(default_factory=list)

    def walk(self) -> Iterator[ModuleCall]:
        """Give the calls inside this one, each behind those it made, and this one last."""
        for child in self.children:
            yield from child.walk()
        yield self

    def tensors(self) -> Iterator[tuple[Where, Tensor]]:
        """Give every tensor of this call and of those inside it, in order of execution."""
        for k, each in enumerate(self.inputs):
            yield (self.name, self.number, "in", k), each
        for child in self.children:
            yield from child.tensors()
        for k, each in enumerate(self.outputs):
            yield (self.name, self.number, "out", k), each


class Tracer:
    """The tree of the latest call of the model."""

    def __init__(self) -> None:
        self.root: ModuleCall | None = None
        self._open: list[ModuleCall] = []
        self._numbers: dict[str, int] = {}

    def enter(self, name: str, kind: str, given: Given) -> None:
        """A module is called."""
        if not name:
            self.root, self._open, self._numbers = None, [], {}
        number = self._numbers[name] = self._numbers.get(name, -1) + 1
        call = ModuleCall(name, number, kind)
        call.inputs = [each.detach().clone() for each in floats((given.args, given.named))]
        if self._open:
            self._open[-1].children.append(call)
        self._open.append(call)

    def leave(self, name: str, output: Any) -> None:
        """A module returns; calls inside it that failed are closed with it."""
        while self._open:
            call = self._open.pop()
            if call.name == name:
                call.outputs = [each.detach().clone() for each in floats(output)]
                self.root = call
                return


@contextmanager
def tracing(model: nn.Module) -> Iterator[Tracer]:
    """Follow every call of every module while the context lasts."""
    tracer = Tracer()
    with Recorder() as recorder:
        for name, module in model.named_modules():
            recorder.on_call(module, partial(tracer.enter, name, type(module).__name__))
            recorder.on_output(module, partial(tracer.leave, name))
        yield tracer


def floats(value: Any) -> Iterator[Tensor]:
    """Give the floating-point tensors inside tensors, tuples, lists and mappings."""
    if isinstance(value, Tensor):
        if value.is_floating_point() and not value.is_nested:
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from floats(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from floats(each)
