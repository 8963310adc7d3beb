"""What a model remembers beside its weights, taken once and put back before every run.

A model may keep buffers, lists or plain attributes from call to call. Each run of an audit begins
from the same memory, and the owner finds the model as it was.
"""

from __future__ import annotations

from collections import deque
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
        self._modules = [
            (module, _copied(_attributes(module)), _copied(module._buffers))
            for module in model.modules()
        ]

    def restore(self) -> None:
        """Put everything back that has changed since."""
        for module, attributes, buffers in self._modules:
            for name in _attributes(module):
                if name not in attributes:
                    del vars(module)[name]
            for name, (value, copy) in attributes.items():
                vars(module)[name] = value
                _put_back(value, copy)
            for name in [each for each in module._buffers if each not in buffers]:
                del module._buffers[name]
            for name, (value, copy) in buffers.items():
                module._buffers[name] = value
                _put_back(value, copy)


def _attributes(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in OWN}


def _copied(values: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (value, _copy(value)) for name, value in values.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return None if value.is_meta else (value._version, value.detach().clone())
    return value.copy() if isinstance(value, list | dict | set | deque) else None


def _put_back(value: Any, copy: Any) -> None:
    if isinstance(value, Tensor) and copy is not None:
        version, tensor = copy
        if value._version != version:
            with torch.no_grad():
                value.detach().copy_(tensor)
    elif isinstance(value, list | deque):
        value.clear()
        value.extend(copy)
    elif isinstance(value, dict | set):
        value.clear()
        value.update(copy)
