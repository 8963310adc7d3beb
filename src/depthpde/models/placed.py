"""Placed: the layers at the positions of one block, and those who watch there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from depthpde.layers.controls import Blur
from depthpde.layers.decoding import DecodeCache, Sites, decode
from depthpde.layers.diffusion import Diffusion
from depthpde.layers.interaction import Inside
from depthpde.layers.multiscale import MultiscaleDiffusion
from depthpde.layers.registry import build_layer
from depthpde.models.config import ModelConfig, ResolvedPlacement
from depthpde.models.position import ROUTES, Option, Position, Route
from depthpde.operators.boundary import Boundary
from depthpde.operators.interaction import visible_pairs
from depthpde.operators.stability import Scheme
from depthpde.shapes import Field, Mask

NORMS = ("attention", "reaction")
"""The two norms of a block, by the term each belongs to."""


class HookPoint(NamedTuple):
    """One point of the network at which a field passes by."""

    position: Position
    """Where in the block."""
    block: int | None
    """In which block; None before the first."""
    part: str
    """Which of several: ``attention`` or ``reaction`` for norms; ``query``, ``key``, ``value`` or
    ``weights`` in attention; else empty."""


Observer = Callable[[HookPoint, Tensor], None]
"""Called with what passes by, after what is placed there has acted. It must not change it."""


class PlacedLayers(nn.Module):
    """What is placed at the positions of one block.

        on_branch(position, u) = D u  where D is placed there on the branch, else u

    Nothing placed: nothing happens, and no parameter exists.

    Args:
        config: The model's config.
        block: Index of the block; None for the place before the first.
    """

    def __init__(self, config: ModelConfig, block: int | None) -> None:
        super().__init__()
        self.block = block
        self.layers = nn.ModuleDict()
        self._routes: dict[str, Route] = {}
        self._observers: list[Observer] = []
        for placement in config.placements:
            if (placement.position is Position.AFTER_EMBEDDING) == (block is None):
                for part in _parts(placement):
                    key = _key(placement.position, part)
                    self.layers[key] = _wrap(config, placement, block)
                    self._routes[key] = placement.route

    def on_branch(
        self,
        place: Position | Inside,
        u: Tensor,
        part: str = "",
        *,
        valid_mask: Mask | None = None,
        cache: DecodeCache | None = None,
    ) -> Tensor:
        """Apply what is placed here on the branch, then call the observers.

        Args:
            place: A position, or what passes by inside attention.
            u: The field there.
            part: Which of several; see `HookPoint`.
            valid_mask: True = real token.
            cache: The sites before `u`.
        """
        if isinstance(place, Inside):
            part = "" if place is Inside.HEADS else place.value
            place = Position.IN_HEADS if place is Inside.HEADS else Position.IN_ATTENTION
        return self._pass(place, part, Route.BRANCH, u, valid_mask, cache)

    def on_stream(
        self,
        place: Position,
        u: Field,
        part: str = "",
        *,
        valid_mask: Mask | None = None,
        cache: DecodeCache | None = None,
    ) -> Field:
        """Apply what is placed here on the stream.

        Observers are called at the positions that have no branch; elsewhere `on_branch` calls them.
        """
        return self._pass(place, part, Route.STREAM, u, valid_mask, cache)

    def on_values(self, valid_mask: Mask | None) -> Callable[[Tensor], Tensor] | None:
        """Return what acts on values in place of what is placed on the weights.

        None where nothing is, where values cannot do the same, or an observer wants the weights.
        """
        key = _key(Position.IN_ATTENTION, Inside.WEIGHTS.value)
        layer = dict(self.layers.items()).get(key)
        if self._observers or not isinstance(layer, AlongKeys) or not layer.is_of_values:
            return None
        return lambda values: layer.on_values(values, valid_mask)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Tell this one of everything that passes by, until the returned function is called."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def _pass(
        self,
        position: Position,
        part: str,
        route: Route,
        u: Tensor,
        valid_mask: Mask | None,
        cache: DecodeCache | None,
    ) -> Tensor:
        key = _key(position, part)
        if self._routes.get(key) is route:
            layer = self.layers[key]
            if cache is None or not isinstance(layer, AlongSites):
                u = layer(u, valid_mask)
            else:
                u = layer.decode(u, cache, f"{self.block}/{key}")
        if self._observers and ROUTES[position][0] is route:
            for observer in self._observers:
                observer(HookPoint(position, self.block, part), u)
        return u


class AlongSites(nn.Module):
    """Apply a layer to the sites of a field, [batch, length, dim].

    Args:
        layer: What is applied.
        prefix: Sites in front that are not of the sequence; they are left alone.
        row_length: Width of the grid, where its rows must not mix.
    """

    def __init__(self, layer: nn.Module, *, prefix: int = 0, row_length: int | None = None) -> None:
        super().__init__()
        self.layer, self.prefix, self.row_length = layer, prefix, row_length

    def forward(self, u: Field, valid_mask: Mask | None) -> Field:
        """Return the field with its sites smoothed."""
        if not self.prefix:
            return self.layer(u, valid_mask, None, self.row_length)
        mask = None if valid_mask is None else valid_mask[:, self.prefix :]
        smooth = self.layer(u[:, self.prefix :], mask, None, self.row_length)
        return torch.cat((u[:, : self.prefix], smooth), dim=1)

    def decode(self, u: Field, cache: DecodeCache, name: str) -> Field:
        """Return new sites smoothed with those that are past, of a causal layer.

        Image rows are segments here: a window may begin anywhere in a row.
        """
        rows = None
        if self.row_length is not None:
            sites = torch.arange(cache.sites, cache.sites + u.shape[1], device=u.device)
            rows = (sites // self.row_length).expand(u.shape[0], -1)
        new = Sites(u, segments=rows)
        return decode(self.layer, new, windows=cache.windows, seen=cache.sites, name=name)


POSITIVE_SCHEMES = (Scheme.EXPLICIT, Scheme.BACKWARD_EULER, Scheme.EXACT)
"""Schemes whose symmetric step holds no negative number at any ratio that a layer can learn."""


class AlongKeys(nn.Module):
    """Apply a layer to attention weights along the key axis, one feature a head.

    Only keys that a query may see take part: walls are at padding and, in a causal model, at
    the query's own site.

    Args:
        along: What is applied, to fields [batch · queries, keys, heads].
        causal: Whether a query sees only the sites before it.
    """

    def __init__(self, along: AlongSites, *, causal: bool) -> None:
        super().__init__()
        self.along, self.causal = along, causal

    def forward(self, weights: Tensor, valid_mask: Mask | None) -> Tensor:
        """Return weights [batch, heads, queries, keys], smoothed and not renormalised."""
        batch, heads, queries, keys = weights.shape
        # One new query is the last, and sees every key.
        causal = self.causal and queries == keys
        seen = visible_pairs(weights, valid_mask=valid_mask, causal=causal)
        if seen is not None:
            seen = seen.expand(batch, 1, queries, keys).reshape(batch * queries, keys)
        field = weights.permute(0, 2, 3, 1).reshape(batch * queries, keys, heads)
        smooth = self.along(field, seen)
        return smooth.reshape(batch, queries, keys, heads).permute(0, 3, 1, 2)

    @property
    def is_of_values(self) -> bool:
        """Whether smoothing the values does the same, as the claim `smoothed-weights` says.

        That needs one mask for all queries, and a step that is symmetric, conserves sums and makes
        nothing negative.
        """
        layer = self.along.layer
        members = layer.members if isinstance(layer, MultiscaleDiffusion) else (layer,)
        gated = isinstance(layer, MultiscaleDiffusion) and layer.gate is not None
        return not (self.causal or gated) and all(
            isinstance(each, Diffusion | Blur)
            and each.problem.scheme in POSITIVE_SCHEMES
            and each.problem.boundary is not Boundary.FIXED
            for each in members
        )

    def on_values(self, values: Tensor, valid_mask: Mask | None) -> Tensor:
        """Return values [batch, heads, keys, head_dim] smoothed along the keys, head by head."""
        batch, heads, keys, features = values.shape
        mask = None if valid_mask is None else valid_mask.repeat_interleave(features, dim=0)
        field = values.permute(0, 3, 2, 1).reshape(batch * features, keys, heads)
        smooth = self.along(field, mask)
        # fused attention wants the features of a site side by side
        return smooth.reshape(batch, features, keys, heads).permute(0, 3, 2, 1).contiguous()


class AcrossHeads(nn.Module):
    """Apply a layer from head to head at each site.

    The heads of a site are a row of a long field [batch, length · heads, head_dim], and rows do
    not mix; a short sequence for each site would be the same and far slower.

    Args:
        layer: What is applied.
        heads: Number of heads.
    """

    def __init__(self, layer: nn.Module, heads: int) -> None:
        super().__init__()
        self.layer, self.heads = layer, heads

    def forward(self, u: Field, valid_mask: Mask | None) -> Field:
        """Return the field with its heads smoothed; no site sees another."""
        batch, length, dim = u.shape
        rows = u.reshape(batch, length * self.heads, dim // self.heads)
        return self.layer(rows, None, None, self.heads).reshape(batch, length, dim)


def _key(position: Position, part: str) -> str:
    return f"{position.value}_{part}" if part else position.value


def _parts(placement: ResolvedPlacement) -> tuple[str, ...]:
    if placement.position is Position.BEFORE_NORM:
        return NORMS
    if placement.position is not Position.IN_ATTENTION:
        return ("",)
    if placement.option is Option.QUERIES_KEYS_VALUES:
        return (Inside.QUERY.value, Inside.KEY.value, Inside.VALUE.value)
    if placement.option is Option.QUERIES_KEYS:
        return (Inside.QUERY.value, Inside.KEY.value)
    return ((Inside.WEIGHTS if placement.option is Option.WEIGHTS else Inside.VALUE).value,)


def _wrap(config: ModelConfig, placement: ResolvedPlacement, block: int | None) -> nn.Module:
    gain = config.ratio_gain(block)
    if placement.option is Option.ACROSS_HEADS:
        # From head to head nothing passes in time: a symmetric layer is safe in a causal model.
        layer = build_layer(placement.layer, config.head_dim, gain=gain)
        return AcrossHeads(layer, config.heads)
    by_weights = placement.option is Option.WEIGHTS
    layer = build_layer(
        placement.layer,
        config.heads if by_weights else config.dim,
        causal=config.causal,
        grid=config.plane,
        gain=gain,
        num_heads=config.heads if placement.position is Position.IN_HEADS else None,
    )
    along = AlongSites(layer, prefix=config.prefix, row_length=config.row_length)
    return AlongKeys(along, causal=config.causal) if by_weights else along
