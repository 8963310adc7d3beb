"""Which change of attention explains the heads that were seen?

    scores not divided by √d · mask left out · mask turned round · seen to the left only · one head
    for all · heads cut otherwise · future open · lower precision

Each is computed from the reference's queries, keys and values; the one that gives the model's
heads is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.doctor.activations import Activations, watching
from depthpde.doctor.attention_weights import attention_weights, bias_of, split_heads
from depthpde.doctor.model_map import ModelMap
from depthpde.doctor.not_measured import NotMeasured
from depthpde.insertion.calling import call_model
from depthpde.measures.attention import seen_pairs

MATCH = 1e-4
"""Relative difference up to which heads count as explained."""
COARSE, HALF = 2e-2, 1e-3
"""Relative differences that bfloat16 makes, and that scores in float16 make."""


def explain_attention(
    body: ModelMap, healthy: ModelMap, args: tuple[Any, ...], named: dict[str, Any],
    module: str, component: str,
) -> tuple[str, str]:  # fmt: skip
    """Return what explains the change of an attention module, and the component it belongs to.

    Args:
        body: The model.
        healthy: The reference.
        args: What both are called with.
        named: And what by name.
        module: The module whose output departs.
        component: Its component, returned where nothing explains it.
    """
    block = _block_of(body, module)
    weights: dict[str, Tensor] = {
        name: nn.Parameter(each.detach(), requires_grad=False)
        for name, each in healthy.model.named_parameters()
    }
    with watching(body) as ours:
        call_model(body.model, args, named, weights=weights)
    with watching(healthy) as theirs:
        call_model(healthy.model, args, named)
    known, seen = theirs.inside[block], ours.inside[block]
    made, usual = (each.get("out", each.get("heads")) for each in (seen, known))
    if made is None or usual is None:
        return "", component
    found = _match(healthy, theirs, block, made)
    if found is not None:
        return found
    gap = _gap(made, usual)
    if gap < COARSE:
        return "numbers of lower precision", "score" if gap < HALF else "kernel"
    return (
        "other sites are seen, or seen otherwise",
        "masking" if component == "score" else component,
    )


def explain_alone(
    body: ModelMap, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, str] | None:
    """Return what explains heads that do not follow from queries and keys; None if nothing.

    Args:
        body: The model.
        args: What it is called with.
        named: And what by name.
    """
    with watching(body) as activations:
        call_model(body.model, args, named)
    for block in range(len(body.blocks)):
        if isinstance(attention_weights(body, activations, block), NotMeasured):
            kept = activations.inside.get(block, {})
            made = kept.get("out", kept.get("heads"))
            found = None if made is None else _match(body, activations, block, made)
            if found is None:
                return None
            return {"text": found[0], "component": found[1], "where": f"block {block + 1}"}
    return None


def _block_of(body: ModelMap, module: str) -> int:
    """Find the block that holds a module."""
    names = {id(each): name for name, each in body.model.named_modules()}
    for k, block in enumerate(body.blocks):
        name = names.get(id(block.parts))
        if name is not None and (module == name or module.startswith(f"{name}.")):
            return k
        inside = {names[id(each)] for each in block.parts.modules() if id(each) in names}
        if name is None and module in inside:
            return k
    raise ValueError(f"`module` must lie in a block, got {module!r}; compare the blocks alone")


def _match(
    body: ModelMap, activations: Activations, block: int, made: Tensor
) -> tuple[str, str] | None:
    """Find the change that makes the heads that were seen of the queries, keys and values."""
    known = activations.inside[block]
    valid = (
        activations.valid_mask
        if activations.valid_mask is None
        else activations.valid_mask[: len(made)]
    )
    query, key, value = split_heads(body, known, block)
    groups = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(groups, dim=1) for each in (key, value))
    allowed = seen_pairs(query.shape[2], valid, causal=bool(body.causal), device=query.device)
    bias = bias_of(known, query @ key.mT, allowed, query.shape[0])
    for words, part, heads in _explanations(query, key, value, bias):
        flat = heads.transpose(1, 2).flatten(2)
        if "out" in known and body.query_key is not None:
            out: Any = body.blocks[block].parts.get_submodule(body.query_key.fused)
            flat = out.out_proj(flat).detach()
        if flat.shape == made.shape and _gap(flat, made, valid) < MATCH:
            return words, part
    return None


def _explanations(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | float
) -> Iterator[tuple[str, str, Tensor]]:
    """Give what may have been changed, its component, and the heads that would follow."""
    root = math.sqrt(query.shape[-1])
    scores = query @ key.mT / root
    low = torch.finfo(scores.dtype).min / 4
    length = scores.shape[-1]
    before = torch.ones(length, length, dtype=torch.bool, device=scores.device).tril()
    yield "scores are not divided by √d", "score", _mix(root * scores + bias, value)
    yield "the mask is left out", "masking", _mix(scores, value)
    if isinstance(bias, Tensor):
        turned = torch.where(bias < 0, 0.0, low)
        yield "the mask is turned round", "masking", _mix(scores + turned, value)
    left = torch.zeros_like(scores).masked_fill(~before, low)
    yield "a site sees what is before it only", "variant", _mix(scores + left + bias, value)
    one = torch.softmax(scores + bias, dim=-1)[:, :1]
    yield "every head attends as the first", "variant", one @ value
    yield "query and key change places", "q, k, v", _mix(scores.mT + bias, value)
    heads = query.shape[1]
    for count in {1, heads // 2, heads * 2} - {0, heads}:
        if (heads * query.shape[-1]) % count == 0:
            q, k, v = (_cut(each, count) for each in (query, key, value))
            add = bias[:, :1] if isinstance(bias, Tensor) and bias.ndim == 4 else bias
            for divisor in (math.sqrt(q.shape[-1]), root):
                mixed = _mix(q @ k.mT / divisor + add, v).transpose(1, 2).flatten(2)
                yield f"{count} heads instead of {heads}", "q, k, v", _cut_flat(mixed, heads)


def _mix(scores: Tensor, value: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) @ value


def _cut(u: Tensor, count: int) -> Tensor:
    """Cut heads otherwise: [batch, heads, length, head_dim] → [batch, count, length, …]."""
    return _cut_flat(u.transpose(1, 2).flatten(2), count)


def _cut_flat(u: Tensor, count: int) -> Tensor:
    return u.reshape(*u.shape[:-1], count, u.shape[-1] // count).transpose(1, 2)


def _gap(a: Tensor, b: Tensor, valid: Tensor | None = None) -> float:
    if valid is not None:
        a, b = a[valid], b[valid]
    return float((a.float() - b.float()).norm() / b.float().norm().clamp_min(1e-30))
