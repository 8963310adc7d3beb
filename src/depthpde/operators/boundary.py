"""Where flux may pass: the ends of the sequence, and the edges cut inside it.

A sequence is a chain of sites joined by edges. What happens at its two ends is the `Boundary`;
padding, packed sequences and image rows are one and the same thing, **cut edges**:

    f_e = 0        where edge e joins two sites that must not exchange anything

so a cut edge is a no-flux wall, exactly, and nothing leaks through it at any number of steps.
"""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.errors import check_mask, check_positive, check_sites, check_tensor
from depthpde.shapes import Edges, Field, Mask, Segments


class Boundary(StrEnum):
    """What the first and the last site see beyond the end.

    >>> u = torch.randn(1, 8, 2)
    >>> around = dp.diffuse(u, 0.25, boundary=dp.Boundary.PERIODIC)   # or boundary="periodic"
    """

    NO_FLUX = "no_flux"
    """A wall: nothing enters or leaves, the mean is conserved (Neumann)."""
    FIXED = "fixed"
    """A neighbour held at zero (Dirichlet)."""
    PERIODIC = "periodic"
    """The other end."""


def count_edges(length: int, boundary: Boundary = Boundary.NO_FLUX, dilation: int = 1) -> int:
    """Count the edges of a chain whose neighbours stand `dilation` sites apart.

    no-flux: n − δ        periodic: n        fixed: n + δ (the zeros beyond both ends count)
    """
    if boundary is Boundary.PERIODIC:
        return length
    if boundary is Boundary.FIXED:
        return length + dilation
    return max(0, length - dilation)


def open_edges(
    u: Field,
    *,
    valid_mask: Mask | None = None,
    segments: Segments | None = None,
    row_length: int | None = None,
    dilation: int = 1,
) -> Edges | None:
    """Tell which edges of a no-flux chain are open; None if all are.

        open_e = valid_i ∧ valid_j ∧ segment_i = segment_j ∧ row_i = row_j,    e = (i, j = i + δ)

    Args:
        u: The field, for its shape and device.
        valid_mask: True = real token. Padding neither gives nor takes.
        segments: One number per packed sequence, [batch, length]; different numbers do not mix.
            In a batch of one also `cu_seqlens`, [sequences + 1].
        row_length: Width of an image laid out row by row; rows do not mix.
        dilation: Distance δ between neighbours.
    """
    conditions: list[Tensor] = []
    if valid_mask is not None:
        check_mask("valid_mask", valid_mask, u)
        conditions.append(_near(valid_mask, dilation) & _far(valid_mask, dilation))
    if segments is not None:
        check_tensor("segments", segments, u)
        segments = segments_of(segments, u) if segments.ndim == 1 else segments
        check_sites("segments", segments, u)
        conditions.append(_near(segments, dilation) == _far(segments, dilation))
    if row_length is not None:
        check_positive("row_length", row_length)
        if u.shape[1] % row_length:
            raise ValueError(
                f"`row_length` must divide the length {u.shape[1]}, got {row_length}; "
                "pad the last row and mark it in `valid_mask`"
            )
        row = (torch.arange(u.shape[1], device=u.device) // row_length)[None]
        conditions.append(_near(row, dilation) == _far(row, dilation))
    if not conditions:
        return None
    opened = conditions[0]
    for condition in conditions[1:]:
        opened = opened & condition
    return opened


def segments_of(cu_seqlens: Tensor, u: Field) -> Segments:
    """Number the sequences packed into one row by where they begin, and where the last ends.

        segment_i = #{k ≥ 1 : cu_seqlens_k ≤ i}

    Args:
        cu_seqlens: [sequences + 1], from 0 to the length, as variable-length attention takes it.
        u: The field, for its shape and device.
    """
    check_tensor("cu_seqlens", cu_seqlens)
    if u.shape[0] != 1 or cu_seqlens.ndim != 1 or cu_seqlens.is_floating_point():
        raise ValueError(
            "`cu_seqlens` must be whole numbers [sequences + 1] for a batch of one, got "
            f"{list(cu_seqlens.shape)} for a batch of {u.shape[0]}; give `segments` [batch, length]"
        )
    sites = torch.arange(u.shape[1], device=u.device)
    ends = cu_seqlens[1:].to(device=u.device, dtype=sites.dtype).contiguous()
    return torch.searchsorted(ends, sites, right=True)[None]


def is_alone(edges: Edges, length: int, dilation: int = 1) -> Tensor:
    """Tell which sites have no open edge, [batch, length, 1]: nothing may change them.

    Args:
        edges: True where an edge is open, [batch | 1, length − δ].
        length: Number of sites.
        dilation: Distance δ between neighbours.
    """
    gap = min(dilation, length)
    return ~(F.pad(edges, (0, gap)) | F.pad(edges, (gap, 0)))[..., None]


def _near(sites: Tensor, dilation: int) -> Tensor:
    return sites[:, :-dilation]


def _far(sites: Tensor, dilation: int) -> Tensor:
    return sites[:, dilation:]
