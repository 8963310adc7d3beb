"""Convolution: the mixing of a residual network over an image, for networks without attention."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from depthpde.errors import (
    check_factory,
    check_field,
    check_grid,
    check_mask,
    check_positive,
    check_precision,
)
from depthpde.shapes import Field, Mask


class Convolution(nn.Module):
    """Mix every site of a grid with those around it, all features with all.

        A[u] = C_2 GELU(C_1 u)        C: 3 × 3 sites, zeros beyond the grid

    What a residual block of a ResNet adds. Padding counts as beyond the grid. Learned: both
    convolutions.

    >>> convolution = dp.Convolution(dim=16, grid=(4, 5))
    >>> convolution(torch.randn(2, 20, 16)).shape
    torch.Size([2, 20, 16])

    Args:
        dim: Features of the field.
        grid: Rows and columns of sites.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        grid: tuple[int, int],
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.grid = check_positive("dim", dim), check_grid("grid", grid)
        check_factory(device, dtype)
        self.enter, self.out = (
            nn.Conv2d(dim, dim, 3, padding=1, device=device, dtype=dtype) for _ in range(2)
        )

    def forward(self, u: Field, *, valid_mask: Mask | None = None) -> Field:
        """Return the increment that the convolutions make of a field.

        Args:
            u: The field, [batch, rows · columns, dim].
            valid_mask: True = real site.
        """
        check_field("u", u, dim=self.dim)
        check_precision("u", u, self.out.weight)
        rows, columns = self.grid
        if u.shape[1] != rows * columns:
            raise ValueError(
                f"`u` must have {rows} × {columns} sites, got {u.shape[1]}; give the grid of "
                "these images"
            )
        real = None
        if valid_mask is not None:
            check_mask("valid_mask", valid_mask, u)
            real = valid_mask.view(-1, 1, rows, columns)
        image = u.transpose(1, 2).reshape(-1, self.dim, rows, columns)
        for k, convolve in enumerate((self.enter, self.out)):
            image = image if real is None else image.masked_fill(~real, 0.0)
            image = convolve(image if k == 0 else F.gelu(image))
        return image.flatten(2).transpose(1, 2)
