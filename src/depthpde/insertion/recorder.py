"""Recorder: hooks that read what passes by, change nothing, and leave together.

The one way in which insertion, causality and the doctor look into a running model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

from torch import Tensor, nn

from depthpde.insertion.family import Side, Tap


class Given(NamedTuple):
    """The arguments of one call of a module."""

    args: tuple[Any, ...]
    named: dict[str, Any]
    names: list[str]
    """The names of the positional ones, in order."""

    def get(self, name: str) -> Any:
        """Return an argument by its name, however it was passed; None if it was not."""
        if name in self.named:
            return self.named[name]
        k = self.names.index(name) if name in self.names else len(self.args)
        return self.args[k] if k < len(self.args) else None

    def at(self, k: int) -> Any:
        """Return the k-th argument, however it was passed; None if it was not."""
        if k < len(self.args):
            return self.args[k]
        return self.named.get(self.names[k]) if k < len(self.names) else None


class Recorder(ExitStack):
    """Hooks on any modules, all removed when the context ends.

    Example:
        >>> with Recorder() as recorder:
        ...     recorder.on_output(model.norm, seen.append)
        ...     model(batch)
    """

    def on_call(self, module: nn.Module, see: Callable[[Given], None]) -> None:
        """Hand over the arguments of every call of a module."""
        names = argument_names(module)

        def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            see(Given(args, kwargs, names))

        self.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)

    def on_output(self, module: nn.Module, see: Callable[[Any], None]) -> None:
        """Hand over what every call of a module returns."""

        def after(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            see(output)

        self.callback(module.register_forward_hook(after).remove)

    def on_return(self, module: nn.Module, see: Callable[[Given, Any], None]) -> None:
        """Hand over arguments and result of every call of a module, side by side."""
        names = argument_names(module)

        def after(
            module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
        ) -> None:
            see(Given(args, kwargs, names), output)

        self.callback(module.register_forward_hook(after, with_kwargs=True).remove)

    def on_tap(
        self,
        parts: nn.Module,
        tap: Tap,
        see: Callable[[Tensor], None],
        turn: int | None = None,
    ) -> None:
        """Hand over one tensor of a block each time it passes by, in the model's own layout.

        Args:
            parts: Holds the modules that the tap's path is read from.
            tap: Which tensor.
            see: Called with it; of a fused projection with the tap's part alone.
            turn: Of a module that runs many times, the one call that is meant; None for each.
        """
        module, calls = parts.get_submodule(tap.path), count()

        def hand_over(value: Any) -> None:
            if turn is None or next(calls) == turn:
                see(tensor_at(tap, value))

        if tap.side is Side.OUTPUT:
            self.on_output(module, hand_over)
        else:
            self.on_call(module, lambda given: hand_over(given.at(tap.argument)))


def tensor_at(tap: Tap, value: Any) -> Tensor:
    """Take a tap's tensor out of what enters or leaves its module."""
    if isinstance(value, tuple | list) and value:
        value = value[0]
    if not isinstance(value, Tensor):
        where = f"{tap.side.value} of {tap.path or 'the block itself'!r}"
        raise ValueError(
            f"`model` must pass tensors from block to block, got {type(value).__name__} as the "
            f"{where}; describe where the stream is with depthpde.insertion.family.Family "
            "(entry=, exit=) and pass family=…"
        )
    k, count = tap.part
    return value if count == 1 else value.chunk(count, dim=-1)[k]


def argument_names(module: nn.Module) -> list[str]:
    """List the arguments of a module's forward, in order."""
    function = getattr(module.forward, "__func__", None)
    if function is None:  # no method: somebody put a function in its place
        return list(inspect.signature(module.forward).parameters)
    return list(_arguments_of_method(function))


@lru_cache(maxsize=256)
def _arguments_of_method(function: Callable[..., Any]) -> tuple[str, ...]:
    """Name the arguments of a method, without the object itself.

    Once each: reading them takes longer than a hook, and hooks come and go in a training.
    """
    return tuple(inspect.signature(function).parameters)[1:]
