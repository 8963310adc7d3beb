"""Tiny inputs that a model may take, read from its arguments, its config and its first layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from depthpde import seeds
from depthpde.insertion.recorder import argument_names

ROWS, LENGTH = 2, 6
FIRST_TOKEN = 3
"""Small numbers are often padding or marks, which a model treats in its own way."""
SOUND_LENGTH = 4000
"""Samples of a waveform: a dozen sites behind the usual strides."""


def examples(model: nn.Module) -> Iterator[dict[str, Any]]:
    """Give inputs to try in turn: tokens, an image, sound, a field.

    Args:
        model: Its arguments are read by name; nothing of it is run.
    """
    names = argument_names(model)
    if not names or not list(model.parameters()):
        return
    config = getattr(model, "config", None)
    beside: dict[str, Any] = {"use_cache": False} if "use_cache" in names else {}
    if getattr(config, "is_encoder_decoder", False) is True and "decoder_input_ids" in names:
        beside["decoder_input_ids"] = _tokens(model)
    for name, make in (("pixel_values", _image), ("input_features", _spectrum),
                       ("input_values", _sound), ("input_ids", _tokens)):  # fmt: skip
        if name in names:
            yield {name: make(model)} | beside
    if names[0] != "input_ids":
        for make in (_tokens, _image, _field):
            if (made := make(model)) is not None:
                yield {names[0]: made} | beside
    elif "inputs_embeds" in names:
        yield {"inputs_embeds": _field(model)} | beside


def _weight(model: nn.Module) -> Tensor:
    weights = (each for each in model.parameters() if each.is_floating_point())
    return next(weights, torch.zeros(()))


def _noise(model: nn.Module, *shape: int) -> Tensor:
    return torch.randn(shape, generator=seeds.generator(0, "example")).to(_weight(model))


def _tokens(model: nn.Module) -> Tensor | None:
    tables = [each.num_embeddings for each in model.modules() if isinstance(each, nn.Embedding)]
    tables = [size for size in tables if size > 2 * FIRST_TOKEN]
    if not tables:
        return None
    span = min(min(tables) - FIRST_TOKEN, 2 * LENGTH)
    tokens = FIRST_TOKEN + torch.arange(ROWS * LENGTH).remainder(span)
    return tokens.view(ROWS, LENGTH).to(_weight(model).device)


def _image(model: nn.Module) -> Tensor | None:
    first = next((each for each in model.modules() if isinstance(each, nn.Conv2d)), None)
    if first is None:
        return None
    size = _setting(model, "image_size") or _setting(model, "img_size") or 64
    height, width = size if isinstance(size, tuple | list) else (size, size)
    return _noise(model, ROWS, first.in_channels, int(height), int(width))


def _spectrum(model: nn.Module) -> Tensor:
    bands = _setting(model, "num_mel_bins") or _setting(model, "input_feat_per_channel") or 80
    longest = _setting(model, "max_source_positions")
    first = next((each for each in model.modules() if isinstance(each, nn.Conv1d)), None)
    if first is not None and first.in_channels == bands and longest:
        return _noise(model, ROWS, bands, 2 * longest)
    return _noise(model, ROWS, 64, bands)


def _sound(model: nn.Module) -> Tensor:
    longest = _setting(model, "max_length")
    bands = _setting(model, "num_mel_bins")
    if bands and longest and any(isinstance(each, nn.Conv2d) for each in model.modules()):
        return _noise(model, ROWS, longest, bands)
    return _noise(model, ROWS, SOUND_LENGTH)


def _field(model: nn.Module) -> Tensor | None:
    for module in model.modules():
        width = getattr(module, "in_features", None) or getattr(module, "embed_dim", None)
        if isinstance(width, int):
            return _noise(model, ROWS, LENGTH, width)
    return None


def _setting(model: nn.Module, name: str) -> Any:
    """Find a number by its name: in the config, in a part of it, or on a module."""
    config = getattr(model, "config", None)
    parts = (getattr(config, "__dict__", None) or {}).values()
    for owner in (config, *(each for each in parts if hasattr(each, "to_dict")), *model.modules()):
        value = getattr(owner, name, None)
        if isinstance(value, int | tuple | list) and value:
            return value
    return None
