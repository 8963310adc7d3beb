"""Attention: how widely each head looks, and how its looking differs.

    entropy               H_i / log n_i,   H_i = −Σ_j K_ij log K_ij,   n_i sites that i may see
    KL, JS                between the rows of two kernels: of two layers, or of two models
    doubly-stochastic gap ½ mean_j |Σ_i K_ij − 1|: 0 where every site is looked at equally

Rows of padding, and rows that see one site alone, carry no information and are left out.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depthpde.errors import check_mask, check_tensor
from depthpde.shapes import Mask


def entropy(weights: Tensor, seen: Tensor | None = None) -> Tensor:
    """Measure how widely each head looks.

        mean_i H_i / log n_i  ∈ [0, 1]        0: at one site; 1: at all alike

    Args:
        weights: [batch, heads, length, length], rows summing to one.
        seen: True where a site may be seen, broadcastable to the weights; None for everywhere.

    Returns:
        [batch, heads]; NaN where no row could be measured.
    """
    _check_kernel("weights", weights)
    choices = _choices(weights, seen)
    counted = choices > 1
    rows = torch.special.entr(_plain(weights, seen)).sum(dim=-1)
    share = rows / torch.where(counted, choices, 2).log()
    return _mean(share.clamp(0.0, 1.0), counted)


def kl(first: Tensor, second: Tensor, seen: Tensor | None = None) -> Tensor:
    """Measure the divergence of a second kernel from a first one, in nats.

        mean_i Σ_j K_ij log(K_ij / M_ij)  ≥ 0

    Infinite where the first looks at what the second never sees.

    Returns:
        [batch, heads].
    """
    _check_alike(first, second)
    p, q = _plain(first, seen), _plain(second, seen)
    rows = (torch.special.xlogy(p, p) - torch.special.xlogy(p, q)).sum(dim=-1)
    return _mean(rows.clamp_min(0.0), _choices(first, seen) > 1)


def js(first: Tensor, second: Tensor, seen: Tensor | None = None) -> Tensor:
    """Measure how differently two kernels look, symmetrically.

        mean_i (KL(K_i ‖ m_i) + KL(M_i ‖ m_i)) / 2 log 2  ∈ [0, 1],    m = (K + M)/2

    Returns:
        [batch, heads].
    """
    _check_alike(first, second)
    p, q = _plain(first, seen), _plain(second, seen)
    rows = torch.special.entr((p + q) / 2) - (torch.special.entr(p) + torch.special.entr(q)) / 2
    share = rows.sum(dim=-1) / math.log(2.0)
    return _mean(share.clamp(0.0, 1.0), _choices(first, seen) > 1)


def doubly_stochastic_gap(weights: Tensor, valid_mask: Mask | None = None) -> Tensor:
    """Measure how far a kernel is from giving every site the same attention.

        ½ mean_j |Σ_i K_ij − 1|  ∈ [0, 1)

    0 for a doubly stochastic kernel, which conserves the mean of the field as diffusion does.

    Args:
        weights: [batch, heads, length, length].
        valid_mask: True = real token.

    Returns:
        [batch, heads].
    """
    _check_kernel("weights", weights, valid_mask)
    weights = weights.detach().to(torch.promote_types(weights.dtype, torch.float32))
    if valid_mask is None:
        valid_mask = weights.new_ones(weights.shape[0], weights.shape[-1], dtype=torch.bool)
    real = torch.where(valid_mask[:, None, :, None], weights, 0.0)
    received = torch.where(valid_mask[:, None, :], (real.sum(dim=-2) - 1).abs(), 0.0)
    return received.sum(dim=-1) / (2 * valid_mask.sum(dim=1)[:, None])


def on_first(weights: Tensor, valid_mask: Mask | None = None) -> Tensor:
    """Measure how much each head rests on the first real token.

        mean_{i > f} K_if,    f the first real token

    Returns:
        [batch, heads]; NaN where no site comes after it.
    """
    _check_kernel("weights", weights, valid_mask)
    batch, _, length, _ = weights.shape
    valid = weights.new_ones(batch, length, dtype=torch.bool) if valid_mask is None else valid_mask
    first = valid.float().argmax(dim=1)
    onto = weights.gather(-1, first[:, None, None, None].expand(*weights.shape[:3], 1))[..., 0]
    later = valid & (torch.arange(length, device=weights.device) > first[:, None])
    return _mean(onto, later[:, None].expand_as(onto))


def nearest_head(weights: Tensor) -> Tensor:
    """Measure how unlike the other heads of a block each head looks.

        min_{g ≠ h} max |K_g − K_h|

    Returns:
        [heads]; 0 for a head that has a twin.
    """
    _check_kernel("weights", weights)
    heads = weights.shape[1]
    apart = weights.new_full((heads, heads), torch.inf)
    for h in range(heads):
        gaps = (weights - weights[:, h : h + 1]).abs().amax(dim=(0, 2, 3))
        apart[h] = gaps
    return apart.fill_diagonal_(torch.inf).amin(dim=1)


def seen_pairs(
    length: int, valid_mask: Mask | None, *, causal: bool, device: torch.device | None = None
) -> Tensor | None:
    """Tell which site may see which, [batch | 1, 1, length, length]; None if all see all.

    Args:
        length: Number of sites.
        valid_mask: True = real token.
        causal: Whether a site sees only itself and the sites before it.
        device: Where the answer is wanted; where the mask is unless given.
    """
    seen = None
    if valid_mask is not None:
        seen = (valid_mask[:, :, None] & valid_mask[:, None, :])[:, None]
    if causal:
        if device is None and valid_mask is not None:
            device = valid_mask.device
        cache = torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
        seen = cache if seen is None else seen & cache
    return seen


def _plain(weights: Tensor, seen: Tensor | None) -> Tensor:
    weights = weights.detach().to(torch.promote_types(weights.dtype, torch.float32))
    return weights if seen is None else torch.where(seen, weights, 0.0)


def _choices(weights: Tensor, seen: Tensor | None) -> Tensor:
    """Count the sites that each row may see, [batch, heads, length]."""
    if seen is None:
        return torch.full(weights.shape[:-1], weights.shape[-1], device=weights.device)
    return seen.expand(weights.shape).sum(dim=-1)


def _mean(rows: Tensor, counted: Tensor) -> Tensor:
    return torch.where(counted, rows, 0.0).sum(dim=-1) / counted.sum(dim=-1)


def _check_kernel(name: str, weights: Tensor, valid_mask: Mask | None = None) -> None:
    check_tensor(name, weights)
    if weights.ndim != 4 or weights.shape[2] != weights.shape[3] or not weights.is_floating_point():
        raise ValueError(
            f"`{name}` must be floating-point [batch, heads, length, length], got {weights.dtype} "
            f"{list(weights.shape)}; give the softmax of one layer"
        )
    if valid_mask is not None:
        check_mask("valid_mask", valid_mask, weights[:, 0])


def _check_alike(first: Tensor, second: Tensor) -> None:
    for name, each in (("first", first), ("second", second)):
        check_tensor(name, each)
    if first.shape != second.shape:
        raise ValueError(
            f"`second` must have the shape of `first`, {list(first.shape)}, got "
            f"{list(second.shape)}; average the heads first where their numbers differ"
        )
