"""Drift: how far the field has gone on its way through depth.

    cosine            mean over tokens of ⟨u_i, v_i⟩ / ‖u_i‖‖v_i‖
    centred cosine    the same after the mean token of the batch is taken away from each field
    CKA               ‖VᵀU‖² / ‖UᵀU‖‖VᵀV‖ of the centred tokens: blind to rotations
    displacement      ‖v − u‖ / ‖u‖

A plain cosine is high between any two fields that share a large mean, so it is never shown
without the centred one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.linalg import vector_norm

from depthpde.errors import check_field
from depthpde.measures.tokens import (
    check_same_shape,
    mean_over_sites,
    real_field,
    real_tokens,
)
from depthpde.shapes import Field, Mask

Comparison = Callable[[Field, Field, Mask | None], Tensor]
"""A measure of two fields."""


def cosine(u: Field, v: Field, valid_mask: Mask | None = None) -> Tensor:
    """Compare the directions of two fields token by token.

        mean_i ⟨u_i, v_i⟩ / ‖u_i‖‖v_i‖  ∈ [−1, 1]

    A token of size zero has no direction and is left out.

    Args:
        u: One field.
        v: The other, of the same shape.
        valid_mask: True = real token.

    Returns:
        [batch]; NaN where no token could be compared.
    """
    check_same_shape(u, v)
    return _cosine(real_field("u", u, valid_mask), real_field("v", v, valid_mask))


def centred_cosine(u: Field, v: Field, valid_mask: Mask | None = None) -> Tensor:
    """Compare the directions of two fields after what all tokens share is taken away.

        mean_i cos(u_i − ū, v_i − v̄),    ū the mean over all real tokens of the batch

    0 in expectation for unrelated fields, whatever their means.

    Returns:
        [batch]; NaN where no token could be compared, as in a constant field.
    """
    check_same_shape(u, v)
    return _cosine(_centred("u", u, valid_mask), _centred("v", v, valid_mask))


def linear_cka(u: Field, v: Field, valid_mask: Mask | None = None) -> Tensor:
    """Compare the geometry of two fields: centred kernel alignment with linear kernels.

        CKA = ‖VᵀU‖²_F / (‖UᵀU‖_F ‖VᵀV‖_F)  ∈ [0, 1],    U, V the centred tokens, one a row

    1 for fields equal up to a rotation and a gain; the two may differ in their features. Above
    zero by chance alone where tokens are few: compare it with that of a random network.

    Returns:
        A scalar over all real tokens; NaN for a constant field.
    """
    check_field("u", u)
    check_field("v", v)
    if u.shape[:2] != v.shape[:2]:
        raise ValueError(
            f"`v` must have the sites of `u`, {list(u.shape[:2])}, got {list(v.shape[:2])}; "
            "compare fields of one batch"
        )
    U, V = (_centred_tokens(each, valid_mask) for each in (u, v))
    if len(U) < min(u.shape[2], v.shape[2]):  # fewer products between tokens than features
        return _aligned(U @ U.mT, V @ V.mT)
    across = vector_norm(V.mT @ U).square()
    return across / (vector_norm(U.mT @ U) * vector_norm(V.mT @ V))


def cka_profile(
    fields: Sequence[Field], valid_mask: Mask | None = None
) -> tuple[list[Tensor], list[Tensor]]:
    """Compare the geometry of every field with the first one's, and with the one before it.

        CKA = ⟨UUᵀ, VVᵀ⟩ / ‖UUᵀ‖‖VVᵀ‖

    The same as `linear_cka` of each pair; where tokens are fewer than features, the products of
    the tokens of a field are made once for all its pairs.

    Args:
        fields: By depth.
        valid_mask: True = real token.

    Returns:
        Against the first, itself included; and between neighbours, one less.
    """
    tokens = fields[0].shape[0] * fields[0].shape[1]
    if tokens >= min(each.shape[2] for each in fields):
        first = against_first(linear_cka, fields, valid_mask)
        return first, between_layers(linear_cka, fields, valid_mask)
    centred = (_centred_tokens(each, valid_mask) for each in fields)
    products = [each @ each.mT for each in centred]
    return (
        [_aligned(products[0], each) for each in products],
        [_aligned(before, after) for before, after in pairwise(products)],
    )


def _aligned(first: Tensor, second: Tensor) -> Tensor:
    """Measure the cosine of two matrices."""
    return (first * second).sum() / (vector_norm(first) * vector_norm(second))


def displacement(u: Field, v: Field, valid_mask: Mask | None = None) -> Tensor:
    """Measure how far a layer has moved the field, against its size.

        ‖v − u‖ / ‖u‖

    Returns:
        [batch]; NaN where the first field is zero.
    """
    check_same_shape(u, v)
    u, v = real_field("u", u, valid_mask), real_field("v", v, valid_mask)
    size: Tensor = vector_norm(u, dim=(1, 2))
    moved: Tensor = vector_norm(v - u, dim=(1, 2))
    return moved / torch.where(size > 0, size, torch.nan)


def against_first(
    compare: Comparison, fields: Sequence[Field], valid_mask: Mask | None = None
) -> list[Tensor]:
    """Compare every field with the first one, itself included."""
    return [compare(fields[0], each, valid_mask) for each in fields]


def between_layers(
    compare: Comparison, fields: Sequence[Field], valid_mask: Mask | None = None
) -> list[Tensor]:
    """Compare every field with the one before it: one result less than fields."""
    return [compare(before, after, valid_mask) for before, after in pairwise(fields)]


def _cosine(u: Field, v: Field) -> Tensor:
    sizes = vector_norm(u, dim=2), vector_norm(v, dim=2)
    both: Tensor = (sizes[0] > 0) & (sizes[1] > 0)
    unit_u, unit_v = (
        each / torch.where(both, size, 1.0)[..., None]
        for each, size in zip((u, v), sizes, strict=True)
    )
    return mean_over_sites((unit_u * unit_v).sum(dim=2).clamp(-1.0, 1.0), both)


def _centred(name: str, u: Field, valid_mask: Mask | None) -> Field:
    u = real_field(name, u, valid_mask)
    centred = _without_mean(u, real_tokens(u, valid_mask))
    return centred if valid_mask is None else centred * valid_mask[..., None]


def _centred_tokens(u: Field, valid_mask: Mask | None) -> Tensor:
    tokens = real_tokens(u, valid_mask)
    return _without_mean(tokens, tokens)


def _without_mean(u: Tensor, tokens: Tensor) -> Tensor:
    """Take the mean token away; what rounding leaves of a constant field is zero."""
    centred = u - tokens.mean(dim=0)
    slack = 8 * torch.finfo(u.dtype).eps * tokens.abs().amax() if tokens.numel() else 0.0
    return torch.where(centred.abs() > slack, centred, 0.0)
