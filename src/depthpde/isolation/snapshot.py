"""What a model remembers beside its weights, taken once and put back before every run.

A model may keep buffers, lists or plain attributes from call to call. Each run of an audit begins
from the same memory, and the owner finds the model as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

OWN = frozenset(vars(nn.Module())) - {"training"}
"""Attributes that every module has; parameters, submodules and hooks are not memory."""


class MemorySnapshot:
    """Buffers and plain attributes of every module of a model.

    Example:
        >>> before = MemorySnapshot(model)
        >>> before.restore()
    """

    def __init__(self, model: nn.Module) -> None:
        self._memories = [
            _Memory(owned, names)
            for module in model.modules()
            for owned, names in (
                (vars(module), vars(module).keys() - OWN),
                (module._buffers, set(module._buffers)),
            )
        ]

    def restore(self) -> None:
        """Put everything back that has changed since."""
        for each in self._memories:
            each.restore()


class _Memory:
    """Some entries of one dict, of which an audit's every run must find the same."""

    def __init__(self, owned: dict[str, Any], names: Iterable[str]) -> None:
        self.owned, self.count = owned, len(owned)
        self.values = {name: owned[name] for name in names}
        copies = ((value, _copy(value)) for value in self.values.values())
        self.copies = [(value, copy) for value, copy in copies if copy is not None]

    def restore(self) -> None:
        """Put the values back; most are as they were, so that only a look is taken at them."""
        owned, values = self.owned, self.values
        for name, value in values.items():
            if owned.get(name, self) is not value:
                owned[name] = value
        if len(owned) != self.count:
            for name in [each for each in owned if each not in values and each not in OWN]:
                del owned[name]
        for value, copy in self.copies:
            _put_back(value, copy)


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return None if value.is_meta else (value._version, value.detach().clone())
    return value.copy() if isinstance(value, list | dict | set | deque) else None


def _put_back(value: Any, copy: Any) -> None:
    if isinstance(value, Tensor):
        version, tensor = copy
        if value._version != version:
            with torch.no_grad():
                value.detach().copy_(tensor)
    elif isinstance(value, list | deque):
        value.clear()
        value.extend(copy)
    else:
        value.clear()
        value.update(copy)
