"""What acts on one tensor of one block.

Hooks are bound methods of plain objects and hold no closures, so a deep copy of a model is wired
to the copies of its layers.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from torch.utils.hooks import RemovableHandle

from depthpde.insertion.family import Plane, Side, Tap
from depthpde.insertion.hooks.call import Call, Running
from depthpde.insertion.hooks.hooked_forward import HookedForward, hooked_forward
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import argument_names
from depthpde.layers.decoding import Sites, decode, next_site
from depthpde.shapes import Field


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
    """Whether the change must be added to the copy of the stream that skips the branch."""
    plane: Plane | None = None
    """How the sites of an image lie."""
    rows: bool = False
    """Whether the layer takes the length of image rows, along which it runs."""
    planar: bool = False
    """Whether the layer runs over a plane, and takes one of another size."""
    segments: bool = False
    """Whether the layer takes packed segments."""


class TensorHook:
    """Everything that acts on one tensor of one block.

    u ← u + owed,      then u ← D u for each layer placed here

    Args:
        tap: The tensor.
        module: The module that it enters or leaves.
        running: The calls of the block.
        layout: The axes of the block's fields.
        bare: Whether the block's call brings neither mask nor cache.
        decodes: Whether the block's call brings a cache: what leaves a module is then hooked at
            its forward, which costs one new site less than torch's hooks do.
    """

    def __init__(
        self,
        tap: Tap,
        module: nn.Module,
        running: Running,
        *,
        layout: FieldLayout,
        bare: bool,
        decodes: bool,
    ) -> None:
        self.tap, self.running, self.layout, self.bare = tap, running, layout, bare
        self.handle: RemovableHandle | None = None
        self.forward: HookedForward | None = None
        self.placed: list[HookedLayer] = []
        self.alone: HookedLayer | None = None
        """The one layer that acts here on a field as it is: what every new site asks for."""
        self.joins: list[str] = []  # carried layers whose change is added here
        self.settles: list[str] = []  # those of them for which this is the last place
        # A pre-hook sees keyword arguments as the caller wrote them, so the name is needed too.
        self.argument = argument_names(module)[tap.argument] if tap.side is Side.INPUT else ""
        if tap.side is Side.INPUT:
            self.handle = module.register_forward_pre_hook(self.before, with_kwargs=True)
        elif decodes:
            self.forward = hooked_forward(module)
            self.forward.behind.append(self.replace)
        else:
            self.handle = module.register_forward_hook(self.after)

    def prepare(self) -> None:
        """Work out what does not change between calls; after every change of layers."""
        self.placed.sort(key=lambda each: each.rank)
        whole = self.layout is FieldLayout.BLC and self.tap.part[1] == 1 and not self.joins
        first = self.placed[0] if whole and len(self.placed) == 1 else None
        self.alone = None if first is None or first.carried or first.plane else first

    def remove(self) -> None:
        """Leave the module."""
        if self.handle is not None:
            self.handle.remove()
        if self.forward is not None:
            self.forward.behind.remove(self.replace)
            self.forward.leave()

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Replace an argument on its way into the module."""
        k = self.tap.argument
        if len(args) > k:
            return (*args[:k], self.through(args[k]), *args[k + 1 :]), kwargs
        return args, {**kwargs, self.argument: self.through(kwargs[self.argument])}

    def after(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """Replace what leaves the module, as torch calls its hooks."""
        return self.replace(output)

    def replace(self, output: Any) -> Any:
        """Replace what leaves the module."""
        if isinstance(output, Tensor):  # first what every call of a decoder brings
            alone, calls = self.alone, self.running.calls
            if alone is not None and calls:
                call = calls[-1]
                if call.seen and call.valid is None and call.windows is not None:
                    window = call.windows.get(alone.name)
                    out = next_site(alone.layer, output, window, call.seen)
                    if out is not None:
                        return out
            return self.through(output)
        if isinstance(output, PackedSequence):
            return self._packed(output)
        if isinstance(output, tuple) and isinstance(output[0], PackedSequence):
            return (self._packed(output[0]), *output[1:])
        if isinstance(output, tuple | list):
            parts = (self.through(output[0]), *output[1:])
            # a named tuple is made from its fields: its owner reads it by name
            return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)
        return self.through(output)

    def _packed(self, packed: PackedSequence) -> PackedSequence:
        """Act on the sequences of a recurrent network, none of which is as long as another."""
        u, lengths = pad_packed_sequence(packed, batch_first=True)
        sites = torch.arange(u.shape[1], device=u.device)
        call = copy(self._running_call())
        call.valid = sites < lengths.to(u.device)[:, None]
        out = pack_padded_sequence(
            self._act(u, call), lengths, batch_first=True, enforce_sorted=False
        )
        return packed._replace(data=out.data)

    def through(self, tensor: Tensor) -> Tensor:
        """Take a tensor through the hook, whatever its layout."""
        k, count = self.tap.part
        if count == 1:
            return self._as_field(tensor)
        pieces = list(tensor.chunk(count, dim=-1))
        pieces[k] = self._as_field(pieces[k])
        return torch.cat(pieces, dim=-1)

    def _as_field(self, tensor: Tensor) -> Tensor:
        call = self._running_call()
        if tensor.ndim == 3 and self.layout is FieldLayout.BLC:
            return self._act(tensor, call)
        if tensor.ndim == 2 and call.sites is not None:
            return self._unflattened(tensor, call, call.sites)
        grid = self.layout.grid(tensor)
        return self.layout.back(self._act(self.layout.field(tensor), call, grid), tensor)

    def _unflattened(self, tensor: Tensor, call: Call, sites: tuple[int, int]) -> Tensor:
        """Act on a tensor whose block runs a part of itself on [batch · length, dim].

        Taken for one long sequence, it would let the end of one mix with the next one's start.
        """
        if tensor.shape[0] != sites[0] * sites[1]:
            raise ValueError(
                f"{self.tap.path!r} must carry the {sites[0]} × {sites[1]} sites of its block's "
                f"call where something is inserted, got {tensor.shape[0]} rows; choose another "
                "position, or describe the block's tensors with family="
            )
        first = self.layout is not FieldLayout.LBC
        u = tensor.reshape(*(sites if first else sites[::-1]), tensor.shape[1])
        out = self._act(u if first else u.transpose(0, 1), call)
        return (out if first else out.transpose(0, 1)).flatten(0, 1)

    def _act(self, u: Field, call: Call, grid: tuple[int, int] | None = None) -> Field:
        if self.joins and call.pending is not None:
            u = u + call.pending
        if self.settles:
            call.pending = None
        for placed in self.placed:
            smooth = self._apply(placed, u, call, grid)
            if smooth.dtype is not u.dtype:
                smooth = smooth.to(u.dtype)
            if placed.carried:  # the residual skips this tensor: its copy gets the change later
                change = smooth - u
                call.pending = change if call.pending is None else call.pending + change
            u = smooth
        return u

    def _running_call(self) -> Call:
        """Give the call of the block in which this tensor passes by.

        Activation checkpointing of a part of a block runs that part outside of any call.
        """
        calls = self.running.calls
        if calls:
            return calls[-1]
        if self.bare and not self.joins and not self._carries():
            return Call()
        raise ValueError(
            f"{self.tap.path!r} must run inside a call of its block where something is "
            "inserted, got a call of its own, without the block's mask; call the whole block, "
            "and checkpoint whole blocks, not parts of them"
        )

    def _carries(self) -> bool:
        return any(placed.carried for placed in self.placed)

    def _apply(
        self, placed: HookedLayer, u: Field, call: Call, grid: tuple[int, int] | None
    ) -> Field:
        plane, layer = placed.plane, placed.layer
        if plane is not None:
            valid = None if call.valid is None else call.valid[:, plane.prefix :]
            rows = {"row_length": plane.grid[1]} if placed.rows else {}
            if grid is not None and (placed.rows or placed.planar):
                rows = {"row_length": grid[1]}  # of this call's image, whatever its size
            patches: Field = layer(u[:, plane.prefix :], valid_mask=valid, **rows)
            return torch.cat((u[:, : plane.prefix], patches.to(u.dtype)), dim=1)
        segments = call.segments if placed.segments else None
        if call.windows is not None:
            # Once sites were read, a call's segments count from the new ones only: they go on in
            # the last segment that was read.
            sites = Sites(u, call.valid, segments if call.seen == 0 else None)
            return decode(layer, sites, windows=call.windows, seen=call.seen, name=placed.name)
        if segments is not None:
            return layer(u, valid_mask=call.valid, segments=segments)
        return layer(u, valid_mask=call.valid)
