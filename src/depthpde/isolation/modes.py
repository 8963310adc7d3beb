"""Run somebody's code in float64, or without dropout, whatever it says itself.

Models cast inside: a norm goes to float32 and back, so double weights alone leave the rounding of
float32. Here every cast to a narrower format becomes one to float64.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}
CASTS = {Tensor.float, Tensor.half, Tensor.bfloat16}
DROPOUTS = {
    "dropout",
    "dropout_",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_dropout",
    "feature_alpha_dropout",
}


class Float64(TorchFunctionMode):
    """Every operation in float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Widen formats and tensors on their way into an operation."""
        if func in CASTS:
            return args[0].double()
        name = getattr(func, "__name__", "")
        writes = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        keep = args[:1] if writes else ()
        args = (*keep, *(widen(each) for each in args[len(keep) :]))
        kwargs = {key: widen(each) for key, each in (kwargs or {}).items() if key != "out"} | (
            {"out": kwargs["out"]} if kwargs and "out" in kwargs else {}
        )
        return func(*args, **kwargs)


class NoDropout(TorchFunctionMode):
    """Every dropout is the identity, that of functions too."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Leave dropout out; let attention drop nothing."""
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in DROPOUTS:
            return args[0] if args else kwargs["input"]
        if name == "scaled_dot_product_attention":
            args, kwargs["dropout_p"] = (*args[:4], *[0.0] * (len(args) > 4), *args[5:]), 0.0
            if len(args) > 4:
                del kwargs["dropout_p"]
        elif name == "multi_head_attention_forward":
            bound = inspect.signature(func).bind(*args, **kwargs)
            bound.arguments["dropout_p"] = 0.0
            args, kwargs = bound.args, bound.kwargs
        return func(*args, **kwargs)


def widen(value: Any) -> Any:
    """Return a format or a tensor as float64; tuples and lists item by item."""
    if isinstance(value, torch.dtype):
        return WIDER.get(value, value)
    if isinstance(value, Tensor):
        wider = WIDER.get(value.dtype)
        return value if wider is None else value.to(wider)
    if type(value) in (tuple, list):
        return type(value)(widen(each) for each in value)
    return value


@contextmanager
def in_float64() -> Iterator[None]:
    """Compute in float64 while the context lasts."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Float64():
            yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Let fused layers, torch's and ours, call their parts, so that they can be seen."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def wide_weights(model: nn.Module) -> Callable[[], dict[str, Tensor]]:
    """Return a function that gives the weights in float64, buffers anew each time."""
    weights = {
        name: nn.Parameter(widen(each.detach()), requires_grad=False)
        for name, each in model.named_parameters()
    }
    buffers = dict(model.named_buffers())

    def give() -> dict[str, Tensor]:
        return weights | {name: widen(each.detach().clone()) for name, each in buffers.items()}

    return give
