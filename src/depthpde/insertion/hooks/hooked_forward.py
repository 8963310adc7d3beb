"""A module's own `forward`, with what is done around and behind it.

    begin,    out = forward(…),    out ← hook(out) for each,    end

torch's forward hooks do the same and cost a decoder more than the layer that is inserted: a call of
a hooked module makes closures, sets and dictionaries of its own, and between two large products
none of that is in the processor's cache. So where nothing but our layer is to be called, the
instance's `forward` is exchanged, as accelerate does, and torch calls it as it calls any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from torch import nn


class Around(Protocol):
    """What begins before a module's forward and ends behind it, also behind an exception."""

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Begin a call."""
        ...

    def end(self) -> None:
        """End it."""
        ...


class HookedForward:
    """Stands in for the `forward` of one module while something is hooked to it.

    Args:
        module: The module.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        # that of the class is looked up at every call: others exchange a module's class
        self.exchanged: Callable[..., Any] | None = module.__dict__.get("forward")
        self.around: list[Around] = []
        self.behind: list[Callable[[Any], Any]] = []
        module.__dict__["forward"] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module's forward and everything that is hooked to it."""
        # One frame where one would do: each costs a decoder a microsecond.
        begun = 0
        try:
            for each in self.around:
                begun += 1
                each.begin(args, kwargs)
            if self.exchanged is None:
                out = type(self.module).forward(self.module, *args, **kwargs)
            else:
                out = self.exchanged(*args, **kwargs)
            for hook in self.behind:
                out = hook(out)
            return out
        finally:
            for each in self.around[:begun]:
                each.end()

    def leave(self) -> None:
        """Give the module its own forward back, if nothing is hooked to this one any more.

        Where somebody has wrapped it meanwhile, it stays and does nothing.
        """
        if self.around or self.behind or self.module.__dict__.get("forward") is not self:
            return
        if self.exchanged is None:
            del self.module.__dict__["forward"]
        else:
            self.module.__dict__["forward"] = self.exchanged

    def __getattr__(self, name: str) -> Any:
        """Show the signature of the forward that this one stands for."""
        # Not a property: `inspect` would take it for the signature of the class.
        if name != "__signature__":
            raise AttributeError(name)
        own = self.exchanged
        bound = type(self.module).forward.__get__(self.module) if own is None else own
        return inspect.signature(bound)


def hooked_forward(module: nn.Module) -> HookedForward:
    """Return what stands in for a module's forward, made if there is none yet."""
    own = module.__dict__.get("forward")
    return own if isinstance(own, HookedForward) else HookedForward(module)
