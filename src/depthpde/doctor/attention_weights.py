"""The attention weights of a pass, made again from queries and keys, and checked.

    K = softmax(q kᵀ / √head_dim + mask),    and    K v  must be the heads that the model made

Queries and keys are as projected, normed where attention has norms for them, and rotated.
Fused attention never forms its weights, so they are computed from its inputs. Whether that is
what the model did (a window, a bias, another gain) is not assumed: the heads that follow from the
weights are compared with those of the model, and weights that fail are refused with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.nn import functional as F

from depthpde.doctor.activations import Activations
from depthpde.doctor.model_map import ModelMap
from depthpde.doctor.not_measured import NotMeasured
from depthpde.layers.interaction import Attention, renormalise
from depthpde.measures.attention import seen_pairs
from depthpde.shapes import Mask

TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3}
COARSE_TOLERANCE = 3e-2
"""Of 16-bit formats; how far remade heads may be from the model's, relative to their size."""

NORMS = ("q_norm", "k_norm")
"""What the norms of queries and keys are called where attention has some."""


@dataclass(frozen=True, slots=True)
class AttentionWeights:
    """Attention weights of one block, for the first sequences of the batch."""

    weights: Tensor
    """[sequences, heads, length, length]."""
    seen: Tensor | None
    """Which site may see which."""
    valid_mask: Mask | None
    logits: Tensor | None = None
    """[heads]: the largest |score| of a pair that may be seen; None where no scores were seen."""
    scale: float = 1.0
    """What the scores are multiplied with, against 1/√head_dim."""
    hidden: float = 0.0
    """The largest weight on a pair that the model's own mask hides."""


def attention_weights(
    model_map: ModelMap, activations: Activations, block: int
) -> AttentionWeights | NotMeasured:
    """Recompute the attention weights of a block, or return why they are not available."""
    kept = activations.inside.get(block, {})
    missing = [name for name in ("query", "key", "value") if name not in kept]
    if missing:
        if model_map.encoder is not None and model_map.query_key is None:
            return NotMeasured("nothing in its blocks attends")
        if model_map.query_key is None:
            return NotMeasured("the family's description does not name where queries and keys are")
        return NotMeasured(f"no {missing[0]} passed by where the family has it")
    query, key, value = split_heads(model_map, kept, block)
    if query.shape[1] % key.shape[1]:
        return NotMeasured(f"{query.shape[1]} query heads do not share {key.shape[1]} key heads")
    groups = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(groups, dim=1) for each in (key, value))
    few = query.shape[0]
    valid = None if activations.valid_mask is None else activations.valid_mask[:few]
    seen = seen_pairs(query.shape[2], valid, causal=bool(model_map.causal), device=query.device)
    if "weights" in kept:
        return AttentionWeights(renormalise(kept["weights"]), seen, valid)
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    bias = bias_of(kept, scores, seen, few)
    why = ""
    for scale in (1.0, math.sqrt(query.shape[-1])):  # as usual, or nothing divided by
        weights = torch.softmax(scale * scores + bias, dim=-1)
        made = (weights @ value).transpose(1, 2).flatten(2)
        wrong = _differs(model_map, kept, block, made, valid)
        if not wrong:
            logits = _largest(scale * scores, seen)
            hidden = _on_hidden(kept, weights, valid)
            return AttentionWeights(weights, seen, valid, logits, scale, hidden)
        why = why or wrong
    return NotMeasured(why)


def _largest(scores: Tensor, seen: Tensor | None) -> Tensor:
    """Find the largest |score| of each head among the pairs that may be seen."""
    size = scores.abs()
    if seen is not None:
        size = size.masked_fill(~seen, 0.0)
    return size.amax(dim=(0, 2, 3))


def _on_hidden(kept: dict[str, Any], weights: Tensor, valid: Mask | None) -> float:
    """Find the largest weight on a pair that a finite mask of the model hides."""
    mask = kept.get("mask")
    if not isinstance(mask, Tensor) or mask.ndim != 4 or not mask.is_floating_point():
        return 0.0
    hides = (mask[: weights.shape[0]] < 0).expand_as(weights)
    if valid is not None:
        hides = hides & valid[:, None, :, None]
    rows = ~hides.all(dim=-1, keepdim=True)
    return float(weights.masked_fill(~(hides & rows), 0.0).amax())


def split_heads(
    model_map: ModelMap, kept: dict[str, Any], block: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Give queries, keys and values as they enter the scores: [batch, heads, length, head_dim]."""
    parts = [kept[name] for name in ("query", "key", "value")]
    module = model_map.blocks[block].parts
    if model_map.query_key is not None and model_map.query_key.fused:
        parts = _project(module.get_submodule(model_map.query_key.fused), parts)
    head_dim = parts[0].shape[-1] // max(1, model_map.heads(block))
    wide = torch.promote_types(parts[0].dtype, torch.float32)
    norms = (*_norms(model_map, block), None)
    query, key, value = (
        _cut(each, head_dim, norm).to(wide).transpose(1, 2)
        for each, norm in zip(parts, norms, strict=True)
    )
    own = getattr(module, "attention", None)
    if isinstance(own, Attention) and own.rotation is not None:
        query, key = own.rotation(query), own.rotation(key)
    if kept.get("rotary") is not None:
        query, key = (_rotate(each, kept["rotary"]) for each in (query, key))
    return query, key, value


def _norms(model_map: ModelMap, block: int) -> tuple[nn.Module | None, nn.Module | None]:
    """Find the norms that queries and keys pass: they stand beside their projections."""
    taps, held = model_map.query_key, model_map.blocks[block]
    if taps is None or taps.fused:
        return None, None
    query = held.parts.get_submodule(taps.query.path)
    beside = (each for each in held.scope.modules() if any(m is query for m in each.children()))
    attention = next(beside, None)
    found = [getattr(attention, name, None) for name in NORMS]
    first, second = (each if isinstance(each, nn.Module) else None for each in found)
    return first, second


def _cut(u: Tensor, head_dim: int, norm: nn.Module | None) -> Tensor:
    """Give [batch, length, heads, head_dim], normed as a whole or head by head as weights say."""
    cut = u.reshape(*u.shape[:-1], -1, head_dim)
    if norm is None:
        return cut
    size = sum(each.numel() for each in norm.parameters())
    with torch.no_grad():
        whole = size > 0 and size % u.shape[-1] == 0
        made: Tensor = norm(u if whole else cut)
        return made.reshape(cut.shape)


def _project(attention: Any, parts: list[Tensor]) -> list[Tensor]:
    weights = attention.in_proj_weight.detach().chunk(3, dim=0)
    bias = attention.in_proj_bias
    biases = (None, None, None) if bias is None else bias.detach().chunk(3, dim=0)
    return [F.linear(u, w, b) for u, w, b in zip(parts, weights, biases, strict=True)]


def _rotate(u: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
    """Turn the first features of each head; tables narrower than a head leave the rest alone."""
    cos, sin = (each[:, None].to(u.dtype) for each in tables)
    turned, rest = u[..., : cos.shape[-1]], u[..., cos.shape[-1] :]
    return torch.cat((turned * cos + _half_turn(turned) * sin, rest), dim=-1)


def _half_turn(u: Tensor) -> Tensor:
    first, second = u.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def bias_of(kept: dict[str, Any], scores: Tensor, seen: Tensor | None, few: int) -> Tensor | float:
    """Give what is added to the scores: the model's own masks, or the mask of tokens."""
    low = torch.finfo(scores.dtype).min / 4
    total: Tensor | float = 0.0
    if seen is not None:
        # A row that sees nothing is padding, and is not looked at.
        hidden = seen.any(dim=-1, keepdim=True) & ~seen
        total = scores.new_zeros(()).expand(hidden.shape).masked_fill(hidden, low)
    for name in ("mask", "source_mask"):
        mask = kept.get(name)
        if not isinstance(mask, Tensor) or mask.shape[-2:] != scores.shape[-2:]:
            continue
        if name == "mask" and mask.ndim != 4:
            continue
        if mask.is_floating_point():
            added = mask.to(scores).clamp_min(low)
        else:
            kept_out = mask if name == "source_mask" else ~mask.bool()
            added = scores.new_zeros(()).expand(kept_out.shape).masked_fill(kept_out, low)
        total = total + (added[:few] if added.ndim == 4 else added)
    return total


def _differs(
    model_map: ModelMap, kept: dict[str, Any], block: int, made: Tensor, valid: Mask | None
) -> str:
    """Compare the heads that follow from the weights with those of the model."""
    parts = model_map.blocks[block].parts
    if (
        model_map.encoder is not None
        and "in_heads" in parts.get_submodule("placed.layers")._modules
    ):
        return ""  # our own heads were smoothed before they passed by
    if "out" in kept and model_map.query_key is not None:
        out: Any = parts.get_submodule(model_map.query_key.fused).out_proj
        theirs, made = kept["out"], out(made.to(out.weight.dtype)).detach()
    elif "heads" in kept:
        theirs = kept["heads"]
    else:
        return "no heads passed by to check the weights against"
    if theirs.shape != made.shape:
        return f"heads of shape {list(theirs.shape)} cannot follow from the queries and keys"
    gap, size = made - theirs.to(made.dtype), theirs.to(made.dtype)
    if valid is not None:
        gap, size = gap[valid], size[valid]
    error = float(vector_norm(gap) / vector_norm(size).clamp_min(1e-30))
    if not math.isfinite(error):
        return f"the heads of block {block + 1} are not finite"
    if error > TOLERANCE.get(theirs.dtype, COARSE_TOLERANCE):
        return (
            f"weights made again from queries and keys give other heads than the model's "
            f"(relative {error:.1g} in block {block + 1}): its attention is not a plain softmax"
        )
    return ""
