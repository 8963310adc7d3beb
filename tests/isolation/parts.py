"""A small decoder in plain torch, and parts that are wrong in one way each."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, WORDS, SITES = 16, 2, 29, 48


class Attention(nn.Module):
    """Causal attention with padding, packed documents and a cache; `fault` breaks one of them."""

    def __init__(self, fault=""):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fault = fault

    def forward(self, u, mask=None, segments=None, past=None):
        q, k, v = (
            each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in self.qkv(u).chunk(3, dim=-1)
        )
        if past is not None:
            old = past
            if self.fault == "stale cache":
                old = tuple(torch.cat([each[:, :, :1], each[:, :, :-1]], dim=2) for each in past)
            k, v = torch.cat([old[0], k], dim=2), torch.cat([old[1], v], dim=2)
        kept = k, v
        if self.fault == "short cache" and past is not None:
            k, v = k[:, :, -4:], v[:, :, -4:]
        n, m = q.shape[2], k.shape[2]
        ahead = 1 if self.fault == "one ahead" else 0
        open_ = torch.ones(n, m, dtype=torch.bool).tril(m - n + ahead)[None, None]
        if mask is not None:
            rows = mask[[1] * len(mask)] if self.fault == "mask of another row" else mask
            open_ = open_ & rows.bool()[:, None, None, -m:]
        if segments is not None and self.fault != "no walls":
            open_ = open_ & (segments[:, None, :, None] == segments[:, None, None, :])
        if n == m:
            open_ = open_ | torch.eye(n, dtype=torch.bool)  # padding sees itself
        score = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if self.fault == "finite mask":
            score = score + torch.where(open_, 0.0, -1e4)
        else:
            score = score.masked_fill(~open_, -torch.inf)
        return self.out((score.softmax(dim=-1) @ v).transpose(1, 2).flatten(2)), kept


class Block(nn.Module):
    def __init__(self, fault=""):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = Attention(fault)
        wide = 2 * WIDTH
        self.mlp = nn.Sequential(nn.Linear(WIDTH, wide), nn.GELU(), nn.Linear(wide, WIDTH))

    def forward(self, u, **named):
        mixed, kept = self.attn(self.ln_1(u), **named)
        u = u + mixed
        return u + self.mlp(self.ln_2(u)), kept


class Plain(nn.Module):
    """A decoder without a library; `faults` by block, `shift` of positions while decoding."""

    def __init__(self, faults=("", ""), shift=0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(SITES, WIDTH)
        self.h = nn.ModuleList(Block(fault) for fault in faults)
        self.ln_f, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.shift = shift

    def forward(self, ids, attention_mask=None, segments=None, cache=None, position_ids=None):
        before = 0 if cache is None else cache[0][0].shape[2] + self.shift
        if position_ids is None:
            position_ids = before + torch.arange(ids.shape[1])
        u, kept = self.wte(ids) + self.wpe(position_ids), []
        for k, block in enumerate(self.h):
            past = None if cache is None else cache[k]
            u, left = block(u, mask=attention_mask, segments=segments, past=past)
            kept.append(left)
        return self.head(self.ln_f(u)), kept


class Around(nn.Module):
    """Stands in the place of a part and calls it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args, **named):
        output = self.inner(*args, **named)
        if isinstance(output, tuple):
            return self.after(output[0]), *output[1:]
        return self.after(output)

    def after(self, u):
        return u


class LooksAhead(Around):
    def after(self, u):
        return u + 0.3 * u.roll(-1, dims=1)


class LooksBack(Around):
    """A smear along the sequence that knows no walls."""

    def after(self, u):
        return u + 0.3 * F.pad(u, (0, 0, 1, 0))[:, :-1]


class NormOverSites(Around):
    def after(self, u):
        return u - 0.2 * u.mean(dim=1, keepdim=True)


class MeanOverRows(Around):
    def after(self, u):
        return u - 0.2 * u.mean(dim=0, keepdim=True)


class BatchNormOverBatch(Around):
    """Batch norm without running moments."""

    def __init__(self, inner):
        super().__init__(inner)
        self.norm = nn.BatchNorm1d(WIDTH, track_running_stats=False)

    def after(self, u):
        return self.norm(u.transpose(1, 2)).transpose(1, 2)


class Capacity(Around):
    """An expert that takes a quarter of the batch's tokens, first come, first served."""

    def after(self, u):
        flat = u.flatten(0, -2)
        wanted = flat[:, 0] > flat[:, 1]
        taken = wanted & (wanted.long().cumsum(0) <= len(flat) // 4)
        return torch.where(taken[:, None], 2 * flat, flat).view_as(u)


class RunningMean(Around):
    def __init__(self, inner):
        super().__init__(inner)
        self.register_buffer("seen", torch.zeros(()))

    def after(self, u):
        v = u * (1 + self.seen)
        self.seen.mul_(0.9).add_(0.1 * u.abs().mean())
        return v


class Diary(Around):
    """Keeps a list of what passed by."""

    def __init__(self, inner):
        super().__init__(inner)
        self.pages = []

    def after(self, u):
        v = u * (1 + 0.1 * len(self.pages))
        self.pages.append(float(u.mean()))
        return v


class KeepsLast(Around):
    """A plain attribute from the call before."""

    last = None

    def after(self, u):
        v = u if self.last is None else u * (1 + self.last)
        self.last = u.abs().mean()
        return v


class AlwaysDrops(Around):
    def after(self, u):
        return F.dropout(u, 0.2)


class LouderInTraining(Around):
    def after(self, u):
        return 1.1 * u if self.training else u


class IgnoresMask(Around):
    def forward(self, *args, **named):
        named = {name: None if is_mask(each) else each for name, each in named.items()}
        return self.inner(*(None if is_mask(each) else each for each in args), **named)


class SoftMask(Around):
    """Closes a key by −4 instead of −∞."""

    def forward(self, *args, **named):
        named = {name: soft(each) if is_mask(each) else each for name, each in named.items()}
        return self.inner(*(soft(each) if is_mask(each) else each for each in args), **named)


class WithoutPositions(Around):
    """Counts from the first site, whatever it is told."""

    def forward(self, position_ids):
        return self.inner(torch.arange(position_ids.shape[-1])[None])


class RotaryByLength(Around):
    """Rotates by a rate that depends on how long the padded batch is."""

    def forward(self, x, position_ids):
        return self.inner(x, position_ids * (1 + 0.05 * x.shape[1]))


class ForgetsPast(Around):
    """A table of positions that begins anew at every call."""

    def forward(self, ids, past_key_values_length=0, **named):
        return self.inner(ids, 0)


class TurnsCache(Around):
    """Sees what is cached one site late."""

    def forward(self, *args, **named):
        cache = named.get("past_key_values")
        hidden = args[0] if args else named["hidden_states"]
        if cache is not None and hidden.shape[1] < 3:
            layer = cache.layers[self.inner.layer_idx]
            layer.values = layer.values.roll(1, dims=2)
        return self.inner(*args, **named)


class TurnsIntermediates(Around):
    """Sees what x-transformers caches one site late."""

    def forward(self, *args, cache=None, **named):
        if cache is not None:
            keys, values = cache.cached_kv
            cache = replace(cache, cached_kv=(keys, values.roll(1, dims=2)))
        return self.inner(*args, cache=cache, **named)


def soft(mask):
    return torch.where(mask if mask.dtype == torch.bool else mask >= 0, 0.0, -4.0)


def is_mask(value):
    return isinstance(value, torch.Tensor) and value.ndim == 4
