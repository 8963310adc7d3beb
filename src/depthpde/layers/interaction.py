"""Attention: the nonlocal term as a layer, open to what is placed inside it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from depthpde.errors import (
    check_factory,
    check_field,
    check_flag,
    check_mask,
    check_positive,
    check_precision,
    check_range,
    shown,
)
from depthpde.layers.decoding import DecodeCache
from depthpde.layers.reaction import Linear
from depthpde.operators import fused_attention
from depthpde.operators.interaction import attention_weights, interact
from depthpde.shapes import Field, Mask


class Inside(StrEnum):
    """What passes by inside attention."""

    QUERY = "query"
    """[batch, length, dim], heads side by side."""
    KEY = "key"
    """[batch, length, dim]."""
    VALUE = "value"
    """[batch, length, dim]: what attention mixes."""
    WEIGHTS = "weights"
    """[batch, heads, length, length]: the kernel itself; only where attention is explicit."""
    HEADS = "heads"
    """[batch, length, dim]: each head's output, before they are mixed."""


At = Callable[[Inside, Tensor], Tensor]
"""Takes what passes by and gives back what goes on, in the same shape."""


def leave(place: Inside, u: Tensor) -> Tensor:
    """Let everything pass as it is."""
    return u


class Attention(nn.Module):
    """Mix every site with the others, by content.

        A[u] = W_out concat_h( K_h v_h ),    K_h = softmax(q_h k_hᵀ / √head_dim)

    Every row of K sums to one, so a head's output stays in the convex hull of its values.
    Padding is never looked at; a sequence of nothing but padding looks at itself. Learned: the
    four projections. `window` may be set on a finished layer: no site then sees farther.

    >>> attention = dp.Attention(dim=16, heads=2)
    >>> attention(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Features of the field.
        heads: Number of heads; divides `dim`.
        causal: Whether a site sees only itself and the sites before it.
        rotation: Turns queries and keys [batch, heads, length, head_dim] by their site, the first
            of which is given as `start`; None leaves them.
        dropout: Share of the weights dropped in training.
        explicit: Whether the weights are formed, so that something can be placed on them; costs
            a matrix [length, length] a head where the fused path keeps none.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        rotation: Callable[..., Tensor] | None = None,
        dropout: float = 0.0,
        explicit: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim = check_positive("dim", dim)
        self.heads = check_positive("heads", heads)
        if dim % heads:
            raise ValueError(
                f"`heads` must divide `dim`, got {heads} heads and dim {dim}; "
                f"use one of {[each for each in range(1, dim + 1) if dim % each == 0]}"
            )
        self.causal = check_flag("causal", causal)
        self.rotation = rotation
        self.dropout = check_range("dropout", dropout, 0.0, 1.0)
        self.explicit = check_flag("explicit", explicit)
        if rotation is not None and not callable(rotation):
            raise ValueError(f"`rotation` must be a function or None, got {shown(rotation)}")
        check_factory(device, dtype)
        self.window: int | None = None
        self.query, self.key, self.value, self.out = (
            Linear(dim, dim, device=device, dtype=dtype) for _ in range(4)
        )

    def forward(
        self,
        u: Field,
        at: At = leave,
        *,
        valid_mask: Mask | None = None,
        cache: DecodeCache | None = None,
        name: str = "",
        on_values: Callable[[Tensor], Tensor] | None = None,
    ) -> Field:
        """Return the increment that attention makes of a field.

        Args:
            u: The field, [batch, length, dim].
            at: Called with each thing that passes by; what it gives back goes on.
            valid_mask: True = real token.
            cache: The sites before `u`, which is then one site, or the first ones.
            name: Which attention this is, for `cache`.
            on_values: Does to values [batch, heads, length, head_dim] what `at` would do to the
                weights, for less; taken unless the weights are dropped.
        """
        check_field("u", u, dim=self.dim)
        check_precision("u", u, self.query.weight)
        if valid_mask is not None:
            check_mask("valid_mask", valid_mask, u)
        query = self._split(at(Inside.QUERY, self.query(u)))
        key = self._split(at(Inside.KEY, self.key(u)))
        value = self._split(at(Inside.VALUE, self.value(u)))
        if self.rotation is not None:
            start = 0 if cache is None else cache.sites
            query, key = self.rotation(query, start=start), self.rotation(key, start=start)
        if cache is not None:
            _check_past(cache, u, valid_mask, causal=self.causal)
            key = cache.join(f"{name}/key", key, axis=2)
            value = cache.join(f"{name}/value", value, axis=2)
        dropped = self.training and self.dropout > 0
        if not self.explicit:
            mixed = self._mix(query, key, value, valid_mask)
        elif on_values is None or dropped:
            mixed = self._mix_explicitly(query, key, value, valid_mask, at)
        else:
            mixed = self._mix(query, key, on_values(value), valid_mask)
            if valid_mask is not None:  # a padded query has no weights
                mixed = torch.where(valid_mask[:, None, :, None], mixed, 0.0)
        return self.out(at(Inside.HEADS, mixed.transpose(1, 2).flatten(2)))

    def extra_repr(self) -> str:
        """Describe what the sub-modules do not."""
        return f"heads={self.heads}, causal={self.causal}, explicit={self.explicit}"

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        # One new site is the last, and sees all.
        causal = self.causal and query.shape[2] == key.shape[2]
        if self.window is not None:
            return self._mix_nearby(query, key, value, valid_mask, self.window)
        if not dropout and fused_attention.supports(query, key, valid_mask, causal=causal):
            return fused_attention.fused_attention(query, key, value, valid_mask, causal=causal)
        if valid_mask is None:
            return F.scaled_dot_product_attention(
                query, key, value, dropout_p=dropout, is_causal=causal
            )
        seen = (valid_mask | ~valid_mask.any(dim=1, keepdim=True))[:, None, None, :]
        if self.causal:
            # The diagonal stays open: a padded site before the first token has no other to see.
            length = seen.shape[-1]
            cache = torch.ones(length, length, dtype=torch.bool, device=seen.device).tril()
            seen = seen & cache | torch.eye(length, dtype=torch.bool, device=seen.device)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, dropout_p=dropout)

    def _mix_nearby(
        self, query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None, window: int
    ) -> Tensor:
        """Mix sites at most so far apart; a site whose neighbours are padding sees itself."""
        sites = torch.arange(key.shape[2], device=key.device)
        apart = sites[-query.shape[2] :, None] - sites
        seen = (apart.abs() <= window) & ((apart >= 0) | (not self.causal))
        if valid_mask is not None:
            seen = seen & valid_mask[:, None, None, :] | (apart == 0)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen)

    def _mix_explicitly(
        self, query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None, at: At
    ) -> Tensor:
        causal = self.causal and query.shape[2] == key.shape[2]
        weights = attention_weights(query, key, valid_mask=valid_mask, causal=causal)
        weights = renormalise(at(Inside.WEIGHTS, weights))
        weights = F.dropout(weights, self.dropout, self.training)
        return interact(value, weights)

    def _split(self, u: Field) -> Tensor:
        batch, length, dim = u.shape
        return u.reshape(batch, length, self.heads, dim // self.heads).transpose(1, 2)


def renormalise(weights: Tensor) -> Tensor:
    """Make the rows of a kernel sum to one again.

        K_ij ← max(K_ij, 0) / Σ_j max(K_ij, 0)

    Rows of padding hold zeros and stay so.
    """
    weights = weights.clamp_min(0.0)
    total = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)


def _check_past(cache: DecodeCache, u: Field, valid_mask: Mask | None, *, causal: bool) -> None:
    if not causal or valid_mask is not None:
        raise ValueError(
            "`cache` must go with causal attention and without `valid_mask`; "
            "run the whole sequence at once instead"
        )
    if cache.sites and u.shape[1] != 1:
        raise ValueError(
            f"`u` must be one new site where {cache.sites} are past, got {u.shape[1]}; "
            "give the new sites one by one"
        )
