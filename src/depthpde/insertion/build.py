"""What can be inserted by name: layers that are the identity until they have learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from depthpde.errors import check_name
from depthpde.insertion.calling import call_model, quiet
from depthpde.insertion.moved import moved_weights
from depthpde.layers.controls import Start
from depthpde.layers.registry import (
    FIXED_KINDS,
    PLANE_KINDS,
    LayerConfig,
    LayerKind,
    build_layer,
)

Factory = Callable[..., nn.Module]


INSERTABLE = tuple(kind for kind in LayerKind if kind not in FIXED_KINDS)
"""Kinds that can be inserted by name: those that can start as the identity."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What a layer must fit."""

    dim: int
    causal: bool
    num_heads: int | None
    """Number of heads, where each has a ratio of its own."""
    grid: tuple[int, int] | None
    device: torch.device
    dtype: torch.dtype


def build(layer: str | Factory, slot: Slot, initial_ratio: float) -> nn.Module:
    """Build a layer by its name or by a function of the caller.

    Args:
        layer: A name, or a function that is called with the number of features and `causal=`.
        slot: What the layer must fit.
        initial_ratio: Where its ratio starts; 0 for the identity.
    """
    if isinstance(layer, str):
        kind = LayerKind(check_name("layer", layer, INSERTABLE))
        return _named(kind, slot, initial_ratio).to(device=slot.device, dtype=slot.dtype)
    if isinstance(layer, nn.Module) or not callable(layer):
        raise ValueError(
            "`layer` must be a name or a function that builds a layer, got "
            f"{type(layer).__name__}; one object cannot serve several places: pass "
            "lambda dim, causal: …"
        )
    if initial_ratio != 0.0:
        raise ValueError(
            f"`initial_ratio` must be left out where `layer` is a function, got {initial_ratio:g}; "
            "let the function choose it"
        )
    built = layer(slot.dim, causal=slot.causal)
    if not isinstance(built, nn.Module):
        raise ValueError(f"`layer` must build a torch.nn.Module, got {type(built).__name__}")
    built = built.to(slot.device)
    if slot.causal and not is_causal(built, slot.dim):
        raise ValueError(
            f"`layer` built a {type(built).__name__} that shows a site its future, in a causal "
            "model; build one with causal=True (the upwind form)"
        )
    return built


def is_causal(layer: nn.Module, dim: int) -> bool:
    """Return whether a layer shows no site its future: by trying it, away from the identity."""
    if getattr(layer, "is_causal", None) is False:
        return False
    weight = next(iter((*layer.parameters(), *layer.buffers())), torch.empty(0))
    past, length = 3, 6
    dtype = weight.dtype if weight.is_floating_point() else torch.float32
    u = torch.linspace(-1, 1, length * dim).to(weight.device, dtype).reshape(1, length, dim)
    changed = torch.cat((u[:, :past], 2 - u[:, past:]), dim=1)
    weights = moved_weights(layer)
    with quiet(layer):
        before, after = (
            call_model(layer, (field,), {"valid_mask": None}, weights=weights, name="layer")
            for field in (u, changed)
        )
    return torch.allclose(before[:, :past], after[:, :past], rtol=1e-5, atol=1e-6)


def _named(kind: LayerKind, slot: Slot, initial_ratio: float) -> nn.Module:
    config = LayerConfig(kind=kind, initial_ratio=initial_ratio)
    if kind is LayerKind.DEPTHWISE_CONV:
        config = _started(kind, Start.BLUR, initial_ratio)
    if kind is LayerKind.LEARNED_STENCIL:
        config = _started(kind, Start.HEAT, initial_ratio)
    return build_layer(
        config,
        slot.dim,
        causal=slot.causal,
        grid=slot.grid if kind in PLANE_KINDS else None,
        num_heads=slot.num_heads,
    )


def _started(kind: LayerKind, start: Start, initial_ratio: float) -> LayerConfig:
    """Return a convolution that starts as smoothing, or as the identity where the ratio is 0."""
    if initial_ratio == 0.0:
        return LayerConfig(kind=kind, start=Start.IDENTITY)
    return LayerConfig(kind=kind, start=start, initial_ratio=initial_ratio)
