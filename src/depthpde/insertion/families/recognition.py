"""The families that are known, and which of them a model belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from depthpde.insertion.families.huggingface import HUGGINGFACE
from depthpde.insertion.families.timm import TIMM
from depthpde.insertion.families.torch_nn import TORCH_NN
from depthpde.insertion.families.traced import trace
from depthpde.insertion.families.x_transformers import X_TRANSFORMERS
from depthpde.insertion.family import BlockParts, Family, Stack, has
from depthpde.insertion.hooks.container import held_stacks
from depthpde.insertion.rehearsal import width_of

FAMILIES: tuple[Family, ...] = (*TORCH_NN, *HUGGINGFACE, *TIMM, *X_TRANSFORMERS)
"""Every known family. Blocks are recognised by their parts; no library is imported."""


def recognise(
    model: nn.Module,
    family: Family | None = None,
    *,
    stack: str | None = None,
    batch: Mapping[str, Any] | None = None,
) -> Stack:
    """Find the family of a model and its blocks, in the one stack that is meant.

    Args:
        model: The model.
        family: The family, if it is described by the caller.
        stack: The module that holds the blocks, where a model has several stacks.
        batch: What the model can be called with, if its family must be found by running it.
    """
    found = find_stacks(model, family, stack=stack, batch=batch)
    if len(found) > 1:
        names = ", ".join(f"{each.name!r} ({len(each.blocks)} blocks)" for each in found)
        raise ValueError(
            f"`model` must have one stack of blocks, got {names}; say which with "
            f"stack={found[-1].name!r}"
        )
    return found[0]


def find_stacks(
    model: nn.Module,
    family: Family | None = None,
    *,
    stack: str | None = None,
    batch: Mapping[str, Any] | None = None,
) -> list[Stack]:
    """Find every stack of blocks: by a description, or else by running the model.

    Args:
        model: The model.
        family: The family, if it is described by the caller.
        stack: The module that holds the blocks.
        batch: What the model can be called with.
    """
    stack = stack or None
    if stack is not None and not has(model, stack):
        raise ValueError(f"`stack` must be a module of the model, got {stack!r}")
    if family is None and (earlier := held_stacks(model, stack)):
        return earlier
    try:
        held = _described(model if stack is None else model.get_submodule(stack), family)
        if stack is not None and held.family.plane is not None:
            raise ValueError(
                f"`stack` must hold a whole {held.family.name}, got {stack!r}: a stage"
            )
        return [replace(held, name=stack or "")]
    except ValueError as error:
        if family is not None:
            raise
        found, reason = trace(model, batch)
        found = [each for each in found if f"{each.name}.".startswith(f"{stack}." if stack else "")]
        if not found:
            reason = f" (nor could it be found by running: {reason})" if reason else ""
            raise ValueError(f"{error}{reason}") from None
        return found


def _described(model: nn.Module, family: Family | None) -> Stack:
    known = FAMILIES if family is None else (family,)
    found = [(each, each.blocks(model)) for each in known]
    found = [(each, blocks) for each, blocks in found if blocks]
    if not found:
        raise ValueError(_unknown(model, family))
    if len(found) > 1:
        names = " and ".join(f"{len(blocks)} of {each.name}" for each, blocks in found)
        raise ValueError(
            f"`model` must hold blocks of one family, got {names}; pass the part you mean, such as "
            "model.encoder, or raise naming which with family="
        )
    chosen, blocks = found[0]
    _check_all_alike(model, chosen, blocks)
    widths = {width_of(chosen, block.parts) for block in blocks}
    if len(widths) > 1:
        raise ValueError(
            f"`model` must have one stream, got {chosen.name} blocks of widths "
            f"{', '.join(map(str, sorted(widths)))}; pass the part you mean, one stage"
        )
    causal = {chosen.is_causal(block.parts) for block in blocks}
    if len(causal) > 1:
        raise ValueError(
            "`model` must be causal or not, got blocks of both kinds; pass the part you mean, such "
            "as model.encoder or model.decoder"
        )
    return Stack("", chosen, blocks)


def _check_all_alike(model: nn.Module, family: Family, blocks: list[BlockParts]) -> None:
    """Refuse a stack that holds other modules between the blocks: its positions are not ours."""
    known = {id(block.parts) for block in blocks}
    for name, stack in model.named_modules():
        if family.find is not None or not isinstance(stack, nn.ModuleList):
            continue
        other = [each for each in stack if id(each) not in known]
        if other and len(other) < len(stack):
            raise ValueError(
                f"`model` must hold nothing but blocks of {family.name} in {name!r}, got "
                f"{len(other)} of {len(stack)} that are none, such as {type(other[0]).__name__}; "
                "describe them all with family="
            )


def _unknown(model: nn.Module, family: Family | None) -> str:
    got = type(model).__name__
    if family is not None:
        return (
            f"`family` {family.name!r} finds no block in {got}; every block needs the modules "
            f"{', '.join(path or 'itself' for path in family.needs())}"
        )
    names = dict.fromkeys(each.name for each in FAMILIES)
    return (
        f"`model` must be of a known family ({', '.join(names)}), got {got}; for another one "
        "describe its block with depthpde.insertion.family.Family (the paths of its norms, its "
        "attention and feed-forward increments and a linear map that reads the stream) and pass "
        "family=…; docs/insertion.md shows one in ten lines"
    )
