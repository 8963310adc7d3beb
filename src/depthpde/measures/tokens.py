"""The real tokens of a field, and means over them: what every measure does with padding.

The value of a padded site, NaN included, changes no result. A sequence of nothing but
padding has nothing to measure: its result is NaN, which means over a batch leave out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.errors import check_field, check_mask
from depthpde.shapes import Field, Mask


def real_field(name: str, u: Field, valid_mask: Mask | None) -> Field:
    """Return the field with zeros at its padding, in at least single precision.

    u_i ← u_i where token i is real, else 0
    """
    check_field(name, u)
    u = u.detach().to(torch.promote_types(u.dtype, torch.float32))
    if valid_mask is None:
        return u
    return torch.where(check_mask("valid_mask", valid_mask, u)[..., None], u, 0.0)


def real_tokens(u: Field, valid_mask: Mask | None) -> Tensor:
    """Return the real tokens of all sequences one under the other, [tokens, dim]."""
    u = real_field("u", u, valid_mask)
    return u.flatten(0, 1) if valid_mask is None else u[valid_mask]


def num_tokens(u: Field, valid_mask: Mask | None) -> Tensor:
    """Count the real tokens of each sequence, [batch]."""
    check_field("u", u)
    if valid_mask is None:
        return torch.full(u.shape[:1], u.shape[1], device=u.device)
    check_mask("valid_mask", valid_mask, u)
    return valid_mask.sum(dim=1)


def mean_over_sites(values: Tensor, counted: Mask) -> Tensor:
    """Average a number a site over the sites that count, [batch]; NaN where none does.

    Args:
        values: [batch, length].
        counted: True where a site counts.
    """
    return torch.where(counted, values, 0.0).sum(dim=1) / counted.sum(dim=1)


def mean_over_batch(values: Tensor) -> float:
    """Average over the sequences that could be measured; NaN if none could."""
    return float(values.nanmean())


def check_same_shape(u: Field, v: Field) -> None:
    """Refuse two fields that cannot be compared site by site."""
    check_field("u", u)
    check_field("v", v)
    if u.shape != v.shape:
        raise ValueError(
            f"`v` must have the shape of `u`, {list(u.shape)}, got {list(v.shape)}; "
            "compare fields of one stream"
        )
