"""Faults of attention, by what it hands to torch's kernel, and of the cache of decoding."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from depthpde.doctor.model_map import ModelMap
from doctor.exam_patient import DoesNotApply, Patient

Kernel = Callable[..., Tensor]


def core(body: ModelMap, k: int) -> nn.Module:
    """Find the module of a block that calls torch's attention."""
    taps = body.query_key
    if taps is None:
        raise DoesNotApply("queries and keys are not seen")
    path = taps.fused or taps.query.path.rpartition(".")[0]
    return body.blocks[k].parts.get_submodule(path)


def on_kernel(p: Patient, change: Callable[..., Tensor]) -> None:
    """Let every attention of a model call `change(kernel, module, q, k, v, **rest)` instead."""
    for k in range(len(p.body.blocks)):
        _wrap(core(p.body, k), change)


def _wrap(module: nn.Module, change: Callable[..., Tensor]) -> None:
    inner = module.forward

    @functools.wraps(inner)
    def forward(*args: Any, **named: Any) -> Any:
        real = F.scaled_dot_product_attention
        used = []

        def kernel(
            q: Tensor,
            k: Tensor,
            v: Tensor,
            attn_mask: Tensor | None = None,
            dropout_p: float = 0.0,
            is_causal: bool = False,
            scale: float | None = None,
            enable_gqa: bool = False,
        ) -> Tensor:
            used.append(1)
            groups = q.shape[1] // k.shape[1]
            if groups > 1:
                k, v = (each.repeat_interleave(groups, dim=1) for each in (k, v))
            return change(
                real,
                module,
                q,
                k,
                v,
                attn_mask=attn_mask,
                dropout_p=dropout_p,
                is_causal=is_causal,
                scale=scale,
            )

        F.scaled_dot_product_attention = kernel
        try:
            return inner(*args, **named)
        finally:
            F.scaled_dot_product_attention = real

    module.forward = forward  # type: ignore[method-assign]


def additive(mask: Tensor | None, is_causal: bool, q: Tensor, k: Tensor) -> Tensor:
    """Give any mask as what is added to the scores."""
    n, m = q.shape[-2], k.shape[-2]
    low = torch.finfo(q.dtype).min / 4
    total = torch.zeros(1, 1, n, m, dtype=q.dtype)
    if is_causal:
        total = total.masked_fill(~torch.ones(n, m, dtype=torch.bool).tril(m - n), low)
    if mask is not None:
        added = (
            mask if mask.is_floating_point() else torch.zeros(mask.shape).masked_fill(~mask, low)
        )
        total = total + added.clamp_min(low).to(q.dtype)
    return total


def masked(change: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Change the additive mask [batch or 1, 1, length, length]; closed rows are opened."""

    def kernel(
        real: Kernel,
        module: nn.Module,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        attn_mask: Tensor | None,
        is_causal: bool,
        **rest: Any,
    ) -> Tensor:
        mask = change(additive(attn_mask, is_causal, q, k))
        closed = (mask < -1e30).all(dim=-1, keepdim=True)
        return real(q, k, v, attn_mask=torch.where(closed, 0.0, mask), **rest)

    return kernel


def mask_zero(p: Patient, strength: Any) -> None:
    on_kernel(p, masked(torch.zeros_like))


def mask_inverted(p: Patient, strength: Any) -> None:
    low = torch.finfo(torch.float32).min / 4
    on_kernel(p, masked(lambda mask: torch.where(mask < 0, 0.0, low)))


def mask_broadcast(p: Patient, strength: str) -> None:
    def change(mask: Tensor) -> Tensor:
        if strength == "batch":
            return mask.roll(1, dims=0)
        return mask[:1].expand_as(mask)

    on_kernel(p, masked(change))


def future_open(p: Patient, share: float) -> None:
    if p.body.causal is not True:
        raise DoesNotApply("no causal mask")

    def change(mask: Tensor) -> Tensor:
        n, m = mask.shape[-2:]
        open_ = torch.rand(n, m, generator=p.draw()) < share
        future = ~torch.ones(n, m, dtype=torch.bool).tril(m - n)
        return torch.where(open_ & future, 0.0, mask)

    on_kernel(p, masked(change))


def scale_dropped(p: Patient, strength: Any) -> None:
    on_kernel(p, lambda real, module, q, k, v, **rest: real(q, k, v, **rest | {"scale": 1.0}))


def by_hand(
    module: nn.Module,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    dropout_p: float,
    scores: Callable[[Tensor], Tensor] = lambda s: s,
) -> Tensor:
    """Compute attention in plain operations."""
    made = scores(q @ k.mT * (scale or 1 / math.sqrt(q.shape[-1])))
    weights = torch.softmax(made + additive(attn_mask, is_causal, q, k), dim=-1)
    return F.dropout(weights, dropout_p) @ v


def dropout_before_softmax(p: Patient, share: float) -> None:
    def change(
        real: Kernel, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, **rest: Any
    ) -> Tensor:
        if not module.training:
            return real(q, k, v, **rest)
        return by_hand(module, q, k, v, scores=lambda s: F.dropout(s, share), **rest)

    on_kernel(p, change)


def half_scores(p: Patient, strength: Any) -> None:
    on_kernel(
        p,
        lambda real, module, q, k, v, **rest: by_hand(
            module, q, k, v, scores=lambda s: s.half().float(), **rest
        ),
    )


def split_wrongly(p: Patient, strength: str) -> None:
    def change(
        real: Kernel, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, **rest: Any
    ) -> Tensor:
        heads = q.shape[1]
        count = {"half": heads // 2, "double": heads * 2, "single": 1}[strength]
        cut = [
            each.transpose(1, 2).flatten(2).unflatten(2, (count, -1)).transpose(1, 2)
            for each in (q, k, v)
        ]
        mask = rest.pop("attn_mask")
        if mask is not None and mask.shape[1] not in (1, count):
            mask = mask[:, :1]
        out = real(*cut, attn_mask=mask, **rest)
        return out.transpose(1, 2).flatten(2).unflatten(2, (heads, -1)).transpose(1, 2)

    on_kernel(p, change)


def one_head(p: Patient, strength: Any) -> None:
    on_kernel(
        p,
        lambda real, module, q, k, v, **rest: real(
            q[:, :1].expand_as(q), k[:, :1].expand_as(k), v, **rest
        ),
    )


def causal_encoder(p: Patient, strength: Any) -> None:
    if p.body.causal is True:
        raise DoesNotApply("it is causal already")
    on_kernel(
        p,
        masked(
            lambda mask: mask.masked_fill(
                ~torch.ones(mask.shape[-2:], dtype=torch.bool).tril(),
                torch.finfo(mask.dtype).min / 4,
            )
        ),
    )


def slow_backend(p: Patient, strength: Any) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def change(
        real: Kernel, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, **rest: Any
    ) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return real(q, k, v, **rest)

    on_kernel(p, change)


def kernel_dropout(p: Patient, share: float) -> None:
    def change(
        real: Kernel, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, **rest: Any
    ) -> Tensor:
        return real(q, k, v, **rest | ({"dropout_p": share} if module.training else {}))

    on_kernel(p, change)


def dtype_fallback(p: Patient, strength: Any) -> None:
    def change(
        real: Kernel,
        module: nn.Module,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        attn_mask: Tensor | None,
        **rest: Any,
    ) -> Tensor:
        wide = (
            attn_mask.double()
            if attn_mask is not None and attn_mask.is_floating_point()
            else attn_mask
        )
        return real(q.double(), k.double(), v.double(), attn_mask=wide, **rest).to(q.dtype)

    on_kernel(p, change)


def reduced_accumulation(p: Patient, strength: Any) -> None:
    def change(
        real: Kernel,
        module: nn.Module,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        attn_mask: Tensor | None,
        **rest: Any,
    ) -> Tensor:
        low = (
            attn_mask.bfloat16()
            if attn_mask is not None and attn_mask.is_floating_point()
            else attn_mask
        )
        return real(q.bfloat16(), k.bfloat16(), v.bfloat16(), attn_mask=low, **rest).to(q.dtype)

    on_kernel(p, change)


def chunked(p: Patient, strength: Any) -> None:
    def change(
        real: Kernel,
        module: nn.Module,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        attn_mask: Tensor | None,
        is_causal: bool,
        **rest: Any,
    ) -> Tensor:
        mask = additive(attn_mask, is_causal, q, k).expand(-1, -1, q.shape[2], -1)
        half = q.shape[2] // 2
        parts = [
            real(q[:, :, s], k, v, attn_mask=mask[:, :, s].contiguous(), **rest)
            for s in (slice(0, half), slice(half, None))
            if q[:, :, s].shape[2]
        ]
        return torch.cat(parts, dim=2)

    on_kernel(p, change)


def on_cache(
    p: Patient,
    change: Callable[[Tensor, int], Tensor],
    blocks: range | None = None,
    *,
    keys_only: bool = False,
) -> None:
    """Change the keys and values that a cache gives back: `change(joined, new)`."""
    own = p.body.encoder is not None
    if p.body.causal is not True or (p.body.family.cache is None and not own):
        raise DoesNotApply("no cache")
    count = len(p.body.blocks)
    for k in blocks if blocks is not None else range(count):
        module = core(p.body, k % count)
        if own or p.body.family.cache.argument == "cache":  # joined inside of attention
            _wrap(module, _joined(change, keys_only))
        else:
            _wrap_cache(module, change, keys_only)


def _joined(change: Callable[[Tensor, int], Tensor], keys_only: bool) -> Callable[..., Tensor]:
    """Change keys and values that are more than the queries: some come from a cache."""

    def kernel(
        real: Kernel, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, **rest: Any
    ) -> Tensor:
        new = q.shape[-2]
        if k.shape[-2] > new:
            k, v = change(k, new), v if keys_only else change(v, new)
        return real(q, k, v, **rest)

    return kernel


def _wrap_cache(
    module: nn.Module, change: Callable[[Tensor, int], Tensor], keys_only: bool
) -> None:
    inner = module.forward

    @functools.wraps(inner)
    def forward(*args: Any, **named: Any) -> Any:
        given = [*args, *named.values()]
        cache = next(
            (each for each in given if hasattr(each, "update") and hasattr(each, "layers")), None
        )
        if cache is None:
            return inner(*args, **named)
        real = cache.update

        def update(key: Tensor, value: Tensor, *rest: Any, **more: Any) -> Any:
            keys, values = real(key, value, *rest, **more)
            if keys.shape[-2] == key.shape[-2]:
                return keys, values  # the first call has no past
            changed = change(keys, key.shape[-2])
            return changed, values if keys_only else change(values, key.shape[-2])

        cache.update = update
        try:
            return inner(*args, **named)
        finally:
            del cache.update

    module.forward = forward  # type: ignore[method-assign]


def cache_stale(p: Patient, where: str) -> None:
    count = len(p.body.blocks)
    blocks = {
        "first": range(1),
        "middle": range(count // 2, count // 2 + 1),
        "last": range(count - 1, count),
        "all": range(count),
    }[where]

    def change(u: Tensor, new: int) -> Tensor:
        past = u[..., :-new, :]
        return torch.cat((past[..., :1, :], past[..., :-1, :], u[..., -new:, :]), dim=-2)

    on_cache(p, change, blocks)


def cache_withheld(p: Patient, strength: Any) -> None:
    on_cache(
        p,
        lambda u, new: torch.cat(
            (u[..., :-new, :], u[..., -new - 1 : -new, :].expand_as(u[..., -new:, :])), dim=-2
        ),
    )


def cache_off_by_one(p: Patient, by: int) -> None:
    # keys against values: a set of pairs that is only turned round gives the same attention
    on_cache(
        p,
        lambda u, new: torch.cat((u[..., :-new, :].roll(by, dims=-2), u[..., -new:, :]), dim=-2),
        keys_only=True,
    )


def cache_truncated(p: Patient, keep: int) -> None:
    def change(u: Tensor, new: int) -> Tensor:
        u = u.clone()
        u[..., : max(0, u.shape[-2] - keep), :] = 0
        return u

    on_cache(p, change)


def cache_across(p: Patient, strength: Any) -> None:
    on_cache(
        p, lambda u, new: torch.cat((u[..., :-new, :].roll(1, dims=0), u[..., -new:, :]), dim=-2)
    )
