"""What acts on one tensor of one block.

Hooks are bound methods of plain objects and hold no closures, so a deep copy of a model is wired
to the copies of its layers.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.insertion.decoding import Sites, advance
from depthpde.insertion.family import Plane, Side, Tap
from depthpde.shapes import Field, Mask, Segments


@dataclass(slots=True)
class HookedLayer:
    """One layer at one tensor."""

    name: str
    layer: nn.Module
    rank: int
    """Layers at one tensor act in the order of their ranks, whichever was inserted first."""
    causal: bool
    """Whether the layer never shows a site its future."""
    carried: bool
    """Whether the change must be told to the copy of the stream that skips over the branch."""
    plane: Plane | None = None
    """How the sites of an image lie."""
    rows: bool = False
    """Whether the layer is told where image rows end."""
    segments: bool = False
    """Whether the layer is told where packed sequences end."""


@dataclass(slots=True)
class Call:
    """What the running call of a block brought, and what its stream is still owed.

    A copy of a model runs no call: there it is empty.
    """

    valid: Mask | None = None
    segments: Segments | None = None
    cache: Any = None
    seen: int = 0
    pending: Field | None = None

    def clear(self) -> None:
        """Let go of everything: a call that has ended keeps no tensor alive."""
        self.valid = self.segments = self.cache = self.pending = None
        self.seen = 0

    def __reduce__(self) -> tuple[type[Call], tuple[()]]:
        """Copy and pickle as empty."""
        return Call, ()


class TensorHook:
    """Everything that acts on one tensor of one block.

    u ← u + owed,      then u ← D u for each layer placed here
    """

    def __init__(self, tap: Tap, module: nn.Module, call: Call, *, batch_first: bool) -> None:
        self.tap, self.call, self.batch_first = tap, call, batch_first
        self.placed: list[HookedLayer] = []
        self.joins: list[str] = []  # carried layers whose change is added here
        self.settles: list[str] = []  # those of them for which this is the last place
        self.argument = argument_names(module)[tap.argument] if tap.side is Side.INPUT else ""
        if tap.side is Side.INPUT:
            self.handle = module.register_forward_pre_hook(self.before, with_kwargs=True)
        else:
            self.handle = module.register_forward_hook(self.after)

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Replace an argument on its way into the module."""
        k = self.tap.argument
        if len(args) > k:
            return (*args[:k], self.through(args[k]), *args[k + 1 :]), kwargs
        return args, {**kwargs, self.argument: self.through(kwargs[self.argument])}

    def after(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """Replace what leaves the module."""
        if isinstance(output, tuple):
            return (self.through(output[0]), *output[1:])
        return self.through(output)

    def through(self, tensor: Tensor) -> Tensor:
        """Take a tensor through the junction, whatever its layout."""
        k, count = self.tap.part
        pieces = list(tensor.chunk(count, dim=-1))
        pieces[k] = self._as_field(pieces[k])
        return pieces[0] if count == 1 else torch.cat(pieces, dim=-1)

    def _as_field(self, tensor: Tensor) -> Tensor:
        if tensor.ndim == 2:
            return self._act(tensor[None])[0]
        if self.batch_first:
            return self._act(tensor)
        return self._act(tensor.transpose(0, 1)).transpose(0, 1).contiguous()

    def _act(self, u: Field) -> Field:
        call = self.call
        if self.joins and call.pending is not None:
            u = u + call.pending
        if self.settles:
            call.pending = None
        for placed in self.placed:
            smooth = self._apply(placed, u).to(u.dtype)
            if placed.carried:
                change = smooth - u
                call.pending = change if call.pending is None else call.pending + change
            u = smooth
        return u

    def _apply(self, placed: HookedLayer, u: Field) -> Field:
        call, plane, layer = self.call, placed.plane, placed.layer
        if plane is not None:
            valid = None if call.valid is None else call.valid[:, plane.prefix :]
            rows = {"row_length": plane.grid[1]} if placed.rows else {}
            patches: Field = layer(u[:, plane.prefix :], valid_mask=valid, **rows)
            return torch.cat((u[:, : plane.prefix], patches.to(u.dtype)), dim=1)
        segments = call.segments if placed.segments else None
        if call.cache is not None:
            sites = Sites(u, call.valid, segments)
            return advance(layer, sites, cache=call.cache, seen=call.seen, name=placed.name)
        if segments is not None:
            return layer(u, valid_mask=call.valid, segments=segments)
        return layer(u, valid_mask=call.valid)


def argument_names(module: nn.Module) -> list[str]:
    """List the arguments of a module's forward, in order."""
    return list(inspect.signature(module.forward).parameters)
