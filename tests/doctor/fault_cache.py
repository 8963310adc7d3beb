"""Faults of the cache of decoding: what it gives back is changed on the way to the scores."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from doctor.exam_patient import DoesNotApply, Patient
from doctor.fault_attention import Kernel, core, wrap


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
            wrap(module, _joined(change, keys_only))
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
