"""Activations: what passes by in one forward pass, seen by hooks that change nothing.

    u_0  →  block 1  →  u_1  →  …  →  u_L        and, in each block, what is added to the stream

A second pass through the same module in one call (activation checkpointing, a second document) is
not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.doctor.large import FEW_TOKENS, is_large
from depthpde.doctor.model_map import ModelMap
from depthpde.insertion.family import Side, Tap
from depthpde.insertion.hooks.masks import valid_mask
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import Given, Recorder
from depthpde.layers.interaction import Inside
from depthpde.models.placed import HookPoint
from depthpde.models.position import Position
from depthpde.shapes import Field, Mask

BUDGET = 2**24
"""How many attention weights of one block are looked at; sequences beyond are left out."""


@dataclass(slots=True)
class Activations:
    """What passed by. Fields are [batch, length, dim] whatever the model's own layout."""

    stream: dict[int, Field] = field(default_factory=dict)
    """The stream by depth: 0 before the first block, l after block l."""
    interaction: dict[int, Field] = field(default_factory=dict)
    """What attention added, by block from 0."""
    reaction: dict[int, Field] = field(default_factory=dict)
    """What the feed-forward added."""
    inside: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Queries, keys, values, heads and masks by block, of the first sequences."""
    valid_mask: Mask | None = None
    moved: dict[str, tuple[Field, Field, Mask | None]] = field(default_factory=dict)
    """What each diffusion layer read and made, by name."""

    def forget(self) -> None:
        """Let go of what no further measure reads: all but the first depth and block."""
        self.stream = {0: self.stream[0]}
        self.inside = {k: each for k, each in self.inside.items() if k == 0}
        self.interaction, self.reaction, self.moved = {}, {}, {}

    def fields(self) -> list[Field]:
        """List the stream by depth."""
        return [self.stream[depth] for depth in sorted(self.stream)]


@contextmanager
def watching(
    model_map: ModelMap,
    *,
    inside: bool = True,
    layers: dict[str, nn.Module] | None = None,
) -> Iterator[Activations]:
    """Record what passes by while the context lasts.

    Args:
        model_map: The model.
        inside: Whether to look inside attention.
        layers: Diffusion layers whose input and output are wanted.
    """
    activations = Activations()
    with Recorder() as recorder:
        _Watcher(model_map, activations, recorder).attach(inside, layers or {})
        yield activations


@contextmanager
def listening(model_map: ModelMap, callback: Callable[[int, Tensor], None]) -> Iterator[Recorder]:
    """Hand over the stream's own tensors, with their depth, while the context lasts.

    Args:
        model_map: The model.
        callback: Called with each depth and tensor; it must not change it.
    """
    with Recorder() as recorder:
        _on_stream(recorder, model_map, callback)
        yield recorder


def _on_stream(
    recorder: Recorder, model_map: ModelMap, callback: Callable[[int, Tensor], None]
) -> None:
    """Hand over the stream before the first block and after each, in the model's own layout."""
    family, blocks = model_map.family, model_map.blocks
    recorder.on_tap(blocks[0].parts, family.entry, partial(callback, 0), model_map.turn(0))
    for k, block in enumerate(blocks):
        recorder.on_tap(block.parts, family.exit, partial(callback, k + 1), model_map.turn(k))


class _Watcher:
    def __init__(self, model_map: ModelMap, activations: Activations, recorder: Recorder) -> None:
        self.model_map, self.activations, self.recorder = model_map, activations, recorder
        self.whole: Given | None = None
        """The model's own call, where it brings the mask."""
        self.most_tokens = FEW_TOKENS if is_large(model_map.model) else BUDGET
        """Whose queries, keys and values are kept."""

    def attach(self, inside: bool, layers: dict[str, nn.Module]) -> None:
        model_map, family, activations = self.model_map, self.model_map.family, self.activations
        if family.padding is not None and family.padding.of_model:
            self.recorder.on_call(model_map.model, self._enter)
        for k, block in enumerate(model_map.blocks):
            self.recorder.on_call(block.scope, partial(self._begin, k))
            if model_map.encoder is None:
                for tap, into in (
                    (family.attention, activations.interaction),
                    (family.ffn, activations.reaction),
                ):
                    if tap is not None:
                        self._tap(k, tap, partial(_write, into, k))
                if inside:
                    self._inside(k)
        _on_stream(self.recorder, model_map, self._stream)
        if model_map.encoder is not None:
            self.recorder.callback(model_map.encoder.observe(partial(self._told, inside)))
        for name, layer in layers.items():
            self.recorder.on_return(layer, partial(self._moved, name))

    def _stream(self, depth: int, u: Tensor) -> None:
        block = max(depth - 1, 0)
        field = self.model_map.layout(block).field(u)
        _write(self.activations.stream, depth, field)

    def _inside(self, k: int) -> None:
        query_key, family = self.model_map.query_key, self.model_map.family
        if query_key is None or family.values is None:
            return
        taps = {"query": query_key.query, "key": query_key.key, "value": family.values}
        if query_key.fused:
            taps["out"] = Tap(query_key.fused, Side.OUTPUT)
        elif family.heads is not None:
            taps["heads"] = family.heads
        for name, tap in taps.items():
            self._tap(k, tap, partial(self._keep, k, name))

    def _told(self, inside: bool, place: HookPoint, u: Tensor) -> None:
        """Record a position of our own models."""
        if place.block is None:
            return
        if place.position is Position.AFTER_ATTENTION:
            _write(self.activations.interaction, place.block, u)
        elif place.position is Position.AFTER_FFN:
            _write(self.activations.reaction, place.block, u)
        elif inside and place.position is Position.IN_ATTENTION:
            self._keep(place.block, place.part, u)
        elif inside and place.position is Position.IN_HEADS:
            self._keep(place.block, Inside.HEADS.value, u)

    def _keep(self, k: int, name: str, u: Tensor) -> None:
        length = u.shape[-2]
        heads = max(1, self.model_map.heads(k))
        few = max(1, min(BUDGET // (heads * length * length), self.most_tokens // length))
        _write(self.activations.inside.setdefault(k, {}), name, u[:few])

    def _enter(self, given: Given) -> None:
        self.whole = given

    def _begin(self, k: int, given: Given) -> None:
        """Read what a block's call brings: its mask, and rotations."""
        query_key, padding = self.model_map.query_key, self.model_map.family.padding
        kept = self.activations.inside.setdefault(k, {})
        u = given.at(self.model_map.family.entry.argument)
        if kept or not isinstance(u, Tensor):
            return
        if padding is not None:
            brought = self.whole if padding.of_model else given
            mask = None if brought is None else brought.get(padding.argument)
            batch, length, _ = self.model_map.layout(k).field(u).shape
            valid = valid_mask(mask, padding, (batch, length))
            if valid is not None and valid.shape != (batch, length):
                valid = None  # of some of the sites only
            if self.activations.valid_mask is None and valid is not None:
                self.activations.valid_mask = valid.detach().clone()
            kept["mask"] = mask
        kept["rotary"] = given.get(query_key.rotary) if query_key and query_key.rotary else None
        kept["source_mask"] = given.get("src_mask" if "src_mask" in given.names else "tgt_mask")

    def _moved(self, name: str, given: Given, out: Any) -> None:
        u = given.at(0)
        if name not in self.activations.moved and isinstance(u, Tensor) and isinstance(out, Tensor):
            pair = (u.detach().clone(), out.detach().clone(), given.get("valid_mask"))
            self.activations.moved[name] = pair

    def _tap(self, k: int, tap: Tap, write: Callable[[Tensor], None]) -> None:
        parts = self.model_map.blocks[k].parts
        self.recorder.on_tap(parts, tap, lambda u: write(self._field(k, u)), self.model_map.turn(k))

    def _field(self, k: int, u: Tensor) -> Field:
        """Give a tensor as [batch, length, dim], also where a block lays sequences end to end."""
        layout, stream = self.model_map.layout(k), self.activations.stream.get(0)
        if u.ndim == 2 and stream is not None:
            batch, length = stream.shape[:2]
            if u.shape[0] == batch * length:
                order = (length, batch) if layout is FieldLayout.LBC else (batch, length)
                u = u.reshape(*order, u.shape[1])
        return layout.field(u)


def _write(into: dict[Any, Any], key: Any, u: Tensor) -> None:
    if key not in into:
        into[key] = u.detach().clone()


def fast_paths_off() -> Callable[[], None]:
    """Keep fused layers, torch's and ours, from leaving out hooks; return what undoes it."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    return lambda: torch.backends.mha.set_fastpath_enabled(before)
