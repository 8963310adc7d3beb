"""Faults of attention, by what it hands to torch's kernel."""

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
        wrap(core(p.body, k), change)


def wrap(module: nn.Module, change: Callable[..., Tensor]) -> None:
    """Let one module call `change(kernel, module, q, k, v, **rest)` instead of the kernel."""
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
