"""From a field to one vector, padding left out."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from depthpde.errors import check_field, check_mask, check_one_of
from depthpde.shapes import Field, Mask


class Pooling(StrEnum):
    """How the sites of a field become one vector."""

    MEAN = "mean"
    """The mean over real tokens."""
    MAX = "max"
    """The largest value of each feature over real tokens."""
    CLS = "cls"
    """The first site, which is an added one."""


def pool(u: Field, pooling: Pooling | str, valid_mask: Mask | None = None) -> Tensor:
    """Gather a field into one vector.

        mean: Σ_valid u(x) / |valid|        max: max_valid u(x)        cls: u(0)

    Padding does not count; a sequence without a real token gives zeros (mean, max).

    Args:
        u: The field.
        pooling: How.
        valid_mask: True = real token.

    Returns:
        [batch, dim].
    """
    check_field("u", u)
    pooling = check_one_of("pooling", pooling, Pooling)
    if pooling is Pooling.CLS:
        return u[:, 0]
    if valid_mask is None:
        return u.mean(dim=1) if pooling is Pooling.MEAN else u.amax(dim=1)
    check_mask("valid_mask", valid_mask, u)
    # Padding is replaced, not multiplied away: 0 · NaN would still be NaN.
    if pooling is Pooling.MEAN:
        kept = torch.where(valid_mask[..., None], u, u.new_zeros(()))
        return kept.sum(dim=1) / valid_mask.sum(dim=1, keepdim=True).clamp_min(1)
    kept = torch.where(valid_mask[..., None], u, u.new_full((), -torch.inf))
    some = valid_mask.any(dim=1, keepdim=True)
    return torch.where(some, kept.amax(dim=1), u.new_zeros(()))
