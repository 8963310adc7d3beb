"""Where each position is in x-transformers' Encoder and Decoder.

A block there is no module: `layers` holds, one after the other, [norms, Attention, residual] and
[norms, FeedForward, residual]. The residual module receives increment and stream side by side, so
both routes are reached without any arithmetic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from depthpde.insertion.family import BlockParts, Cache, Family, NormOrder, Padding, into, out_of

WORDS = {"a": "attention", "c": "cross", "f": "ffn"}
PRE_BRANCH, POST_MAIN = 0, 2


def _roots(model: nn.Module) -> list[Any]:
    """Find the stacks whose blocks are plain attention [, cross-attention], feed-forward."""
    return [module for module in model.modules() if _is_plain_stack(module)]


def _is_plain_stack(module: Any) -> bool:
    named = ("layers", "layer_types", "pre_norm", "num_residual_streams", "layers_execute_order")
    return (
        all(hasattr(module, name) for name in named)
        and module.num_residual_streams == 1
        and tuple(module.layers_execute_order) == tuple(range(len(module.layer_types)))
        and _period(module.layer_types) > 0
    )


def _period(types: tuple[str, ...]) -> int:
    for unit in (("a", "f"), ("a", "c", "f")):
        if tuple(types) == unit * (len(types) // len(unit)):
            return len(unit)
    return 0


def _blocks(model: nn.Module, *, pre: bool, cross: bool) -> list[BlockParts]:
    found = []
    for root in _roots(model):
        period = _period(root.layer_types)
        if bool(root.pre_norm) is not pre or (period == 3) is not cross:
            continue
        for start in range(0, len(root.layers), period):
            view = nn.ModuleDict()
            for k in range(start, start + period):
                word = WORDS[root.layer_types[k]]
                norms, layer, residual = root.layers[k]
                view[word], view[f"{word}_residual"] = layer, residual
                view[f"{word}_norm"] = norms[PRE_BRANCH if pre else POST_MAIN]
            found.append(BlockParts(view, root))
    return found


def _pre(model: nn.Module) -> list[BlockParts]:
    return _blocks(model, pre=True, cross=False)


def _pre_cross(model: nn.Module) -> list[BlockParts]:
    return _blocks(model, pre=True, cross=True)


def _post(model: nn.Module) -> list[BlockParts]:
    return _blocks(model, pre=False, cross=False)


def _post_cross(model: nn.Module) -> list[BlockParts]:
    return _blocks(model, pre=False, cross=True)


PRE = Family(
    name="x-transformers",
    norm=NormOrder.PRE,
    norms=("attention_norm", "ffn_norm"),
    attention=into("attention_residual"),
    ffn=into("ffn_residual"),
    width="attention.to_q",
    values=out_of("attention.to_v"),
    heads=into("attention.to_out"),
    num_heads="attention.heads",
    causal="attention.causal",
    padding=Padding("mask"),
    cache=Cache(
        "cache", refusal="its rows and length change outside; generate with cache_kv=False"
    ),
    entry=into("attention_norm"),
    exit=out_of("ffn_residual"),
    residuals=("attention_residual", "ffn_residual"),
    find=_pre,
)
PRE_CROSS = replace(
    PRE,
    norms=("attention_norm", "cross_norm", "ffn_norm"),
    residuals=("attention_residual", "cross_residual", "ffn_residual"),
    find=_pre_cross,
)
POST = replace(
    PRE, norm=NormOrder.POST, entry=into("attention"), exit=out_of("ffn_norm"), find=_post
)
POST_CROSS = replace(POST, norms=PRE_CROSS.norms, residuals=PRE_CROSS.residuals, find=_post_cross)

X_TRANSFORMERS = (PRE, PRE_CROSS, POST, POST_CROSS)
