"""The families that are known, and which of them a model belongs to."""

from __future__ import annotations

from torch import nn

from depthpde.insertion.families.huggingface import HUGGINGFACE
from depthpde.insertion.families.timm import TIMM
from depthpde.insertion.families.torch_nn import TORCH_NN
from depthpde.insertion.families.x_transformers import X_TRANSFORMERS
from depthpde.insertion.family import BlockParts, Family

FAMILIES: tuple[Family, ...] = (*TORCH_NN, *HUGGINGFACE, *TIMM, *X_TRANSFORMERS)
"""Every known family. Blocks are recognised by their parts; no library is imported."""


def recognise(model: nn.Module, family: Family | None = None) -> tuple[Family, list[BlockParts]]:
    """Find the family of a model and its blocks.

    Args:
        model: The model.
        family: The family, if it is described by the caller.
    """
    known = FAMILIES if family is None else (family,)
    found = [(each, each.blocks(model)) for each in known]
    found = [(each, blocks) for each, blocks in found if blocks]
    if not found:
        raise ValueError(_unknown(model, family))
    if len(found) > 1:
        names = " and ".join(f"{len(blocks)} of {each.name}" for each, blocks in found)
        raise ValueError(
            f"`model` must hold blocks of one family, got {names}; pass the part you mean, such as "
            "model.encoder, or say which with family="
        )
    chosen, blocks = found[0]
    _check_all_alike(model, chosen, blocks)
    causal = {chosen.is_causal(block.parts) for block in blocks}
    if len(causal) > 1:
        raise ValueError(
            "`model` must be causal or not, got blocks of both kinds; pass the part you mean, such "
            "as model.encoder or model.decoder"
        )
    return chosen, blocks


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
