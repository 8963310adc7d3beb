"""What the call of a whole model brings: padding and cache of blocks that are not given them.

A state-space block is often called with the stream alone, an expert block without a mask, a linear
map with nothing else. The model above them was given both, so its call is read, and every block
inside it looks there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from torch import nn

from depthpde.insertion.hooks.call import Call, Running
from depthpde.insertion.hooks.decoding import windows_of
from depthpde.insertion.recorder import Given, argument_names
from depthpde.layers.decoding import UNCOUNTED, Window

MODEL_CACHES = ("past_key_values", "cache_params", "state")
"""What models call a cache."""


class ModelHooks:
    """The hooks of one model, there while a stack in it reads the model's own call.

    Args:
        model: The model that layers were inserted into.
    """

    def __init__(self, model: nn.Module) -> None:
        self.running, self.arguments = Running(), argument_names(model)
        self.handles = (
            model.register_forward_pre_hook(self.begin, with_kwargs=True, prepend=True),
            model.register_forward_hook(self.end, always_call=True),
        )

    def begin(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the arguments of a call that begins, and what layers have read of its sequence."""
        call = self.running.begin()
        call.given = Given(args, kwargs, self.arguments)
        if call.given.get("use_cache") is False:
            return
        cache = cache_in(call.given)
        call.windows = {} if cache is None else carried_windows(cache)
        call.seen = 0 if cache is None else sites_in(cache, call.windows)

    def end(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Forget a call that has ended; a cache that it made takes along what layers have read."""
        call = self.running.call
        cache = returned_cache(output)
        if call is not None and call.windows and cache is not None:
            with suppress(ValueError):  # one that cannot carry it is refused when it comes back
                carried_windows(cache).update(call.windows)
        self.running.end()

    def remove(self) -> None:
        """Leave the model."""
        for handle in self.handles:
            handle.remove()

    def call_of(self, name: str) -> Call:
        """Return the running call, or refuse to guess what it would have brought.

        Args:
            name: Of the block that needs it.
        """
        call = self.running.call
        if call is None:
            raise ValueError(
                f"{name!r} must run inside a call of the model that a layer was inserted into, got "
                "a call of its own, without the model's mask and cache; call that model, without "
                "activation checkpointing"
            )
        return call


def cache_in(given: Given) -> Any:
    """Return the cache that a model is called with; None if there is none."""
    return next((each for name in MODEL_CACHES if (each := given.get(name)) is not None), None)


def returned_cache(output: Any) -> Any:
    """Return the cache that a model gives back; None if there is none."""
    if isinstance(output, Mapping):
        return next((output[name] for name in MODEL_CACHES if name in output), None)
    if isinstance(output, tuple):
        return next((each for each in output if hasattr(each, "get_seq_length")), None)
    named = (getattr(output, name, None) for name in MODEL_CACHES)
    return next((each for each in named if each is not None), None)


def carried_windows(cache: Any) -> dict[str, Window]:
    """Return what layers have read of a cache's sequence, or refuse one that cannot carry it."""
    try:
        return windows_of(cache)
    except (AttributeError, TypeError):
        raise ValueError(
            "the cache must be an object that can carry what inserted layers have read, got "
            f"{type(cache).__name__}; call the model with use_cache=False"
        ) from None


def sites_in(cache: Any, windows: Mapping[str, Window]) -> int:
    """Count the sites that a cache has read; UNCOUNTED if it keeps a state and no count.

    Args:
        cache: Of a model whose layers may be of several kinds.
        windows: What inserted layers have read of it.
    """
    counts: list[Any] = []
    for number in _numbers(cache):
        with suppress(AttributeError, IndexError, TypeError, ValueError, KeyError):
            counts.append(cache.get_seq_length(*number))
    if any(not isinstance(each, int) for each in counts):
        raise ValueError(
            f"the cache must be one that grows, got {type(cache).__name__}; use a DynamicCache, or "
            "use_cache=False"
        )
    return max(counts, default=0) or (UNCOUNTED if windows else 0)


def _numbers(cache: Any) -> Iterable[tuple[int, ...]]:
    """Give what `get_seq_length` is asked with: each of a cache's layers, or the cache itself."""
    try:
        return [(k,) for k in range(len(cache))] or [()]
    except TypeError:
        return [()]
