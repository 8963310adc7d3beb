"""Which arguments bring a stack its padding and its cache: found by running, not by names alone.

Where every block of a stack is given both, they are read there. Where some block is not (a state
space, an expert, a linear map), the model's own arguments are read instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.insertion.calling import call_model
from depthpde.insertion.family import Cache, Padding
from depthpde.insertion.hooks.masks import valid_mask
from depthpde.insertion.hooks.model_hooks import MODEL_CACHES
from depthpde.insertion.recorder import Given, Recorder, argument_names
from depthpde.insertion.residual import CACHES, BlockCall
from depthpde.layers.decoding import UNCOUNTED

MASKS = ("attention_mask", "mask", "attn_mask")
"""What blocks call a mask."""
PREFIXES = ("", "decoder_")
"""Of the arguments of a model's own sequence, and of its decoder's."""


def argument_roles(
    model: nn.Module,
    given: dict[str, Any],
    calls: Sequence[BlockCall],
    views: Sequence[Any],
    *,
    causal: bool | None,
) -> tuple[Padding | None, Cache | None]:
    """Find the arguments that bring a stack its padding and its cache.

    Args:
        model: The model.
        given: What it was run with.
        calls: A call of every block.
        views: The view of every block, with its number in a cache.
        causal: Whether no site of a block sees its future; None where that is not known.
    """
    tokens = {
        prefix: each
        for prefix in PREFIXES
        if isinstance(each := given.get(f"{prefix}input_ids"), Tensor) and each.ndim > 1
    }
    prefix = _sequence(model, given, tokens, calls[0])
    padding = _padding(model, given, calls, tokens, prefix)
    decoded = prefix == max(tokens, default=None) and causal is not False
    return padding, _cache(model, given, calls, views, decoded=decoded)


def _sequence(
    model: nn.Module, given: dict[str, Any], tokens: dict[str, Tensor], first: BlockCall
) -> str | None:
    """Tell whose sites a stack has: "" for the model's own, "decoder_" for the decoder's."""
    length = first.layout.field(first.out).shape[1]
    alike = [prefix for prefix, each in tokens.items() if each.shape[1] == length]
    if len(alike) < 2:
        return alike[0] if alike else None
    name = "decoder_input_ids"  # an encoder as long as its decoder does not move with it
    moved: list[Any] = []
    with Recorder() as recorder, suppress(ValueError):
        recorder.on_output(first.module, moved.append)
        call_model(model, (), given | {name: tokens["decoder_"].flip(1)})
    out = moved[0][0] if moved and isinstance(moved[0], tuple | list) else next(iter(moved), None)
    return "" if isinstance(out, Tensor) and torch.equal(out, first.out) else "decoder_"


def _padding(
    model: nn.Module,
    given: dict[str, Any],
    calls: Sequence[BlockCall],
    tokens: dict[str, Tensor],
    own: str | None,
) -> Padding | None:
    """Find the argument that brings padding, by runs in which two sites are padding."""
    names = [*calls[0].given.names, *calls[0].given.named]
    argument = next((name for name in MASKS if name in names), None)
    for prefix in tokens if argument is not None and own is None else (own,):
        if argument is None or prefix is None:
            continue
        mask = torch.ones(tokens[prefix].shape[:2], dtype=torch.long, device=tokens[prefix].device)
        mask[-1, -2:] = 0
        seen: dict[int, Any] = {}
        with Recorder() as recorder, suppress(ValueError):
            for call in calls:
                recorder.on_call(call.module, partial(_note, seen, argument, id(call.module)))
            call_model(model, (), given | {f"{prefix}attention_mask": mask})
        for keep in (True, False):
            padding = Padding(argument, keep=keep)
            if seen and all(_shows(seen.get(id(call.module)), padding, mask) for call in calls):
                return padding
    name = f"{own}attention_mask"
    return Padding(name, of_model=True) if name in argument_names(model) else None


def _note(seen: dict[int, Any], argument: str, number: int, call: Given) -> None:
    seen.setdefault(number, call.get(argument))


def _shows(brought: Any, padding: Padding, mask: Tensor) -> bool:
    """Return whether what a block was given says which tokens are real."""
    with suppress(ValueError, IndexError):
        valid = valid_mask(brought, padding, (mask.shape[0], mask.shape[1]))
        return valid is not None and torch.equal(valid, mask.bool())
    return False


def _cache(
    model: nn.Module,
    given: dict[str, Any],
    calls: Sequence[BlockCall],
    views: Sequence[Any],
    *,
    decoded: bool,
) -> Cache | None:
    """Find the argument that brings the cache: a block's, if it counts the sites of each block."""
    names = [*calls[0].given.names, *calls[0].given.named]
    argument = next((name for name in CACHES if name in names), None)
    told = argument is not None and all(view.layer_idx >= 0 for view in views)
    if argument and told and not (decoded and _miscounts(model, given, calls, views, argument)):
        return Cache(argument, index="layer_idx")
    own = next((name for name in MODEL_CACHES if name in argument_names(model)), None)
    return Cache(own, of_model=True) if own is not None and decoded else None


def _miscounts(
    model: nn.Module,
    given: dict[str, Any],
    calls: Sequence[BlockCall],
    views: Sequence[Any],
    argument: str,
) -> bool:
    """Return whether a cache that is asked for a block's number counts other sites than its own.

    None before the block's first call, and as many behind it in every block.
    """
    early: list[int] = []
    caches: list[Any] = []

    def see(number: int, call: Given) -> None:
        cache = call.get(argument)
        if cache is not None:
            caches.append(cache)
            early.append(_count(cache, number))

    wants = {"use_cache": True} if "use_cache" in argument_names(model) else {}
    with Recorder() as recorder, suppress(ValueError):
        for call, view in zip(calls, views, strict=True):
            recorder.on_call(call.module, partial(see, view.layer_idx))
        call_model(model, (), given | wants)
    late = {_count(cache, view.layer_idx) for view in views for cache in caches[:1]}
    return any(early) or 0 in late or len(late - {UNCOUNTED}) > 1


def _count(cache: Any, number: int) -> int:
    """Return how many sites a cache holds for a block; UNCOUNTED if it is a recurrence's state."""
    with suppress(Exception):
        return int(cache.get_seq_length(number))
    with suppress(Exception):
        return UNCOUNTED if cache.has_previous_state(number) else 0
    return 0
