"""Every family's attention mask as `valid_mask` (True = real token) and as packed segments."""

from __future__ import annotations

from torch import Tensor, nn

from depthpde.insertion.family import Padding
from depthpde.shapes import Mask, Segments

HIDDEN = -5000.0
"""A score lowered by this much has a weight of exactly 0, in every precision: e^−5000 = 0."""


def valid_mask(mask: object, padding: Padding, sites: tuple[int, int]) -> Mask | None:
    """Convert a padding mask of the library's own convention.

        [batch, keys]                  one entry a token
        [batch, heads, queries, keys]  a token is real if any query may read it

    Booleans and 0/1 integers are taken by `padding.keep`; floating-point masks are added to the
    attention scores, so real tokens are those not sent far below 0. With a cache the keys are
    those of earlier calls too: the last ones belong to this call.

    Args:
        mask: What the family gave its block; None if nothing is padded.
        padding: The family's convention.
        sites: Batch and length of this call.
    """
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or mask.ndim not in (1, 2, 4):
        shape = list(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(
            f"`{padding.argument}` must be a tensor [batch, length] or [batch, heads, queries, "
            f"keys], got {shape}; load the model with attn_implementation='sdpa' or 'eager'"
        )
    valid = _readable(mask, padding)
    if valid.ndim == 4:
        valid = valid.any(dim=2).any(dim=1)
    if valid.ndim == 1:
        valid = valid[None]
    batch, length = sites
    return valid[:, -length:].expand(batch, -1)


def packed_segments(mask: object, padding: Padding, sites: tuple[int, int]) -> Segments | None:
    """Number the sequences that are packed into one, from a mask [batch, heads, queries, keys].

        a new segment begins at i     where no query at i may read the key at i − 1

    None if the mask does not show it: another shape, or keys of earlier calls.
    """
    batch, length = sites
    if not isinstance(mask, Tensor) or mask.ndim != 4 or mask.shape[2:] != (length, length):
        return None
    before = _readable(mask, padding).any(dim=1).diagonal(offset=-1, dim1=1, dim2=2)
    return nn.functional.pad((~before).long().cumsum(dim=1), (1, 0)).expand(batch, -1)


def _readable(mask: Tensor, padding: Padding) -> Tensor:
    if mask.is_floating_point():
        return mask > HIDDEN
    return mask.bool() if padding.keep else ~mask.bool()
