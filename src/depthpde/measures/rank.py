"""Rank: are the tokens of a sequence still different from each other?

residual          ‖X − 1x̄ᵀ‖ / ‖X‖          0 when all tokens are one (Dong et al. 2021)
effective rank    exp(−Σ p_k log p_k),  p_k = σ_k / Σσ
token cosine      mean over i ≠ j of cos(u_i, u_j)        towards 1 as they collapse
clusters          groups of tokens joined by cosines of at least c
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.linalg import svdvals, vector_norm

from depthpde.errors import check_range
from depthpde.measures.tokens import num_tokens, real_field
from depthpde.shapes import Field, Mask


def rank_residual(u: Field, valid_mask: Mask | None = None) -> Tensor:
    """Measure how far the tokens are from all being the same.

        ‖X − 1x̄ᵀ‖_F / ‖X‖_F  ∈ [0, 1],    x̄ the mean token of the sequence

    Attention alone drives it to zero doubly exponentially in depth (Dong et al.); residuals hold
    it up. Zero for a sequence of one token and for the zero field.

    Args:
        u: The field.
        valid_mask: True = real token.

    Returns:
        [batch]; NaN where a sequence is padding alone.
    """
    u = real_field("u", u, valid_mask)
    count = num_tokens(u, valid_mask)
    mean = u.sum(dim=1, keepdim=True) / count[:, None, None]
    apart = u - mean if valid_mask is None else (u - mean) * valid_mask[..., None]
    size: Tensor = vector_norm(u, dim=(1, 2))
    gap: Tensor = vector_norm(apart, dim=(1, 2))
    residual = gap / torch.where(size > 0, size, 1.0)
    return torch.where(count > 0, residual, torch.nan)


def effective_rank(u: Field, valid_mask: Mask | None = None) -> Tensor:
    """Count the directions that a field really uses.

        exp(−Σ_k p_k log p_k),    p_k = σ_k / Σ σ        (Roy & Vetterli 2007)

    Between 1 (all tokens on one line) and min(length, dim). For the rank of a whole batch give
    its tokens as one sequence: ``effective_rank(real_tokens(u, mask)[None])``.

    Returns:
        [batch]; 0 for the zero field, NaN where a sequence is padding alone.
    """
    u = real_field("u", u, valid_mask)
    sigma = svdvals(u.nan_to_num(0.0, 0.0, 0.0))
    total = sigma.sum(dim=1, keepdim=True)
    share = sigma / torch.where(total > 0, total, 1.0)
    rank = torch.exp(torch.special.entr(share).sum(dim=1))
    rank = torch.where(total[:, 0] > 0, rank, 0.0)
    measured = (num_tokens(u, valid_mask) > 0) & u.isfinite().all(dim=2).all(dim=1)
    return torch.where(measured, rank, torch.nan)


def token_cosine(u: Field, valid_mask: Mask | None = None) -> Tensor:
    """Measure how alike the tokens of a sequence are.

        mean_{i≠j} cos(u_i, u_j) = (‖Σ_i û_i‖² − n) / n(n − 1),    û_i = u_i / ‖u_i‖

    O(length). About 0 for tokens in random directions, 1 when all point one way. A token of size
    zero has no direction and is left out.

    Returns:
        [batch]; NaN for fewer than two tokens.
    """
    unit, directed = _directions(u, valid_mask)
    count = directed.sum(dim=1)
    pairs = count * (count - 1)
    together = unit.sum(dim=1).square().sum(dim=1) - count
    cosine = (together / torch.where(pairs > 0, pairs, 1)).clamp(-1.0, 1.0)
    return torch.where(pairs > 0, cosine, torch.nan)


def cluster_count(u: Field, valid_mask: Mask | None = None, *, cosine: float = 0.9) -> Tensor:
    """Count the groups into which the tokens of a sequence have gathered.

        i ~ j  where  cos(u_i, u_j) ≥ c;    a group is what is joined by a chain of such pairs

    As many as tokens when all are apart, 1 when they have collapsed. O(length²).

    Args:
        u: The field.
        valid_mask: True = real token.
        cosine: c, from which on two tokens count as near.

    Returns:
        [batch], as floating point; NaN where a sequence has no directed token.
    """
    check_range("cosine", cosine, -1.0, 1.0)
    unit, directed = _directions(u, valid_mask)
    slack = 8 * torch.finfo(unit.dtype).eps
    near = (unit @ unit.mT >= cosine - slack) & directed[:, :, None] & directed[:, None, :]
    length = unit.shape[1]
    own = torch.arange(length, device=unit.device).expand(unit.shape[:2])
    label = own
    while True:  # every token takes the least label of those near it, until nothing changes
        spread = torch.where(near, label[:, None, :], length).amin(dim=2)
        spread = torch.minimum(label, spread)
        spread = spread.gather(1, spread)  # and what that one has found
        if torch.equal(spread, label):
            break
        label = spread
    groups = ((label == own) & directed).sum(dim=1)
    return torch.where(directed.any(dim=1), groups.to(unit.dtype), torch.nan)


def _directions(u: Field, valid_mask: Mask | None) -> tuple[Field, Mask]:
    """Return the tokens as unit vectors, and which of them have a direction."""
    u = real_field("u", u, valid_mask)
    size: Tensor = vector_norm(u, dim=2)
    directed = (size > 0) & size.isfinite()
    unit = torch.where(directed[..., None], u / torch.where(directed, size, 1.0)[..., None], 0.0)
    return unit, directed
