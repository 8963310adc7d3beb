"""A: attention as a nonlocal operator on the field.

    (A[u])(x) = ∫ K(u)(x, y) v(y) dy        K ≥ 0, every row integrates to one

The kernel K is a matrix of weights between sites, made from scores. Two normalisations:

    softmax     K = exp(s) / row sums                       rows sum to one
    Sinkhorn    K = diag(eᶠ) exp(s) diag(eᵍ)                rows and columns sum to one

With symmetric scores the Sinkhorn kernel is symmetric and the interaction is minus the gradient
of an energy (`interaction_energy`); the softmax kernel has no such energy (docs/equations.md §11).
"""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from depthpde.errors import check_one_of, check_positive
from depthpde.shapes import Field, Mask


class Kernel(StrEnum):
    """How scores become the weights of a nonlocal operator."""

    SOFTMAX = "softmax"
    """Rows sum to one: what every Transformer uses."""
    SINKHORN = "sinkhorn"
    """Rows and columns sum to one: the mean of the field is conserved."""


def interact(values: Field, weights: Tensor) -> Field:
    """Gather at every site the values of the others.

        (A u)_i = Σ_j K_ij v_j

    Args:
        values: [..., length, dim].
        weights: The kernel, [..., length, length], from `attention_weights`.
    """
    return weights @ values


def attention_scores(query: Tensor, key: Tensor, *, gain: float | None = None) -> Tensor:
    """Compare every site with every other.

        s_ij = gain · ⟨q_i, k_j⟩,    gain = 1/√dim unless given

    Args:
        query: [..., length, dim].
        key: [..., length, dim].
        gain: Inverse temperature.
    """
    if gain is None:
        gain = query.shape[-1] ** -0.5
    return gain * (query @ key.mT)


def attention_weights(
    query: Tensor,
    key: Tensor,
    *,
    kernel: Kernel = Kernel.SOFTMAX,
    gain: float | None = None,
    valid_mask: Mask | None = None,
    causal: bool = False,
    iterations: int = 20,
) -> Tensor:
    """Make the kernel of the nonlocal operator from queries and keys.

        K = normalise(exp(gain · q kᵀ)),    K_ij = 0 where site j may not be seen from site i

    Softmax rows sum to one. Sinkhorn rows sum to one and columns do so as the iterations grow.
    Rows and columns of padding are zero: padding neither gives nor takes.

    Args:
        query: [batch, length, dim] or [batch, heads, length, head_dim].
        key: Shaped as `query`.
        kernel: Softmax or Sinkhorn.
        gain: Inverse temperature; 1/√dim unless given.
        valid_mask: [batch, length], True = real token.
        causal: Whether a site sees only itself and what stands before it.
        iterations: Rounds of the Sinkhorn normalisation.

    Returns:
        [..., length, length].
    """
    kernel = check_one_of("kernel", kernel, Kernel)
    if causal and kernel is Kernel.SINKHORN:
        raise ValueError(
            "`kernel` must be softmax where `causal` is True, got sinkhorn: the only causal "
            "matrix whose rows and columns all sum to one is the identity; use Kernel.SOFTMAX"
        )
    scores = attention_scores(query, key, gain=gain)
    seen = visible_pairs(scores, valid_mask=valid_mask, causal=causal)
    if kernel is Kernel.SINKHORN:
        return sinkhorn(scores, seen, iterations=iterations)
    if seen is None:
        return torch.softmax(scores, dim=-1)
    return torch.softmax(_hide(scores, seen), dim=-1) * seen


def visible_pairs(
    scores: Tensor, *, valid_mask: Mask | None = None, causal: bool = False
) -> Tensor | None:
    """Tell which site may see which; None if every site sees all.

        seen_ij = valid_i ∧ valid_j ∧ (j ≤ i where causal)

    Returns:
        Boolean, broadcastable to the scores.
    """
    seen = None
    if valid_mask is not None:
        _check_mask(valid_mask, scores)
        seen = valid_mask[:, :, None] & valid_mask[:, None, :]
        seen = seen.reshape(seen.shape[0], *(1,) * (scores.ndim - 3), *seen.shape[1:])
    if causal:
        past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        seen = past if seen is None else seen & past
    return seen


def sinkhorn(scores: Tensor, seen: Tensor | None = None, *, iterations: int = 20) -> Tensor:
    """Scale a positive kernel until its rows and columns sum to one.

        K = exp(f_i + s_ij + g_j),    g ← −log Σ_i exp(s_ij + f_i),    f ← −log Σ_j exp(s_ij + g_j)

    In the log domain, so large scores do not overflow. The last half-round is over rows: rows
    sum to one exactly, columns within an error that shrinks geometrically.

    Args:
        scores: [..., length, length].
        seen: True where a pair may interact; the open pairs must be a square block.
        iterations: Rounds.
    """
    check_positive("iterations", iterations)
    logits = scores if seen is None else _hide(scores, seen)
    row = torch.zeros_like(logits[..., :1])
    column = torch.zeros_like(logits[..., :1, :])
    for _ in range(iterations):
        column = -torch.logsumexp(logits + row, dim=-2, keepdim=True)
        row = -torch.logsumexp(logits + column, dim=-1, keepdim=True)
    weights = torch.exp(logits + row + column)
    return weights if seen is None else weights * seen


def interaction_energy(u: Field, *, gain: float, iterations: int = 200) -> Tensor:
    """Give the energy whose descent is Sinkhorn attention with equal queries, keys and values.

        E[u] = (1 / 2 gain) Σ_ij K_ij (log K_ij − gain ⟨u_i, u_j⟩),      −∂E/∂u = K u

    The entropic transport cost of the field onto itself: K minimises it, so the gradient sees u
    only through the scores (the envelope theorem). Exact as the iterations converge.

    Returns:
        [batch].
    """
    scores = attention_scores(u, u, gain=gain)
    weights = sinkhorn(scores, iterations=iterations)
    return (weights * (weights.log() - scores)).sum(dim=(-2, -1)) / (2 * gain)


def _hide(scores: Tensor, seen: Tensor) -> Tensor:
    # A site that sees nothing would be 0/0: it looks at itself, and is cleared afterwards.
    # The hidden scores are finite, so no gradient ever meets inf − inf.
    alone = torch.diag_embed(~seen.any(dim=-1))
    return scores.masked_fill(~(seen | alone), torch.finfo(scores.dtype).min / 4)


def _check_mask(valid_mask: Mask, scores: Tensor) -> None:
    wanted = (scores.shape[0], scores.shape[-1])
    if valid_mask.dtype != torch.bool or tuple(valid_mask.shape) != wanted:
        raise ValueError(
            f"`valid_mask` must be boolean [batch, length] = {list(wanted)} with True for real "
            f"tokens, got {valid_mask.dtype} {list(valid_mask.shape)}; use mask.bool()"
        )
