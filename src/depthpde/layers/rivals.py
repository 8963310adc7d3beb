"""The short causal mixings that others put into their models, with diffusion's walls and gain."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from depthpde.errors import check_field, check_positive, check_range
from depthpde.layers.controls import Start
from depthpde.layers.stencil import LearnedStencil, TapBound
from depthpde.operators.boundary import open_edges
from depthpde.shapes import Field, Mask, Segments

CANON_WIDTH = 4


class Canon(LearnedStencil):
    """Add a causal convolution of width four to the field.

        u_i ← u_i + Σ_{0 ≤ k < 4} w_k u_{i−k}

    Canon layers, arXiv 2512.17351, without an activation. Learned: four taps a feature, bounded by
    nothing; here the own site's holds the residual, so that all start and learn as a stencil's do.

    >>> dp.Canon(16)(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        initial_ratio: Where the weight of the site before starts; 0 for the identity.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        initial_ratio: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            dim,
            reach=CANON_WIDTH - 1,
            start=Start.IDENTITY,
            start_ratio=initial_ratio,
            bound=TapBound.FREE,
            causal=True,
            device=device,
            dtype=dtype,
        )

    def reset_parameters(self) -> None:
        """Start as the identity, with so much of the site before."""
        super().reset_parameters()
        with torch.no_grad():
            self.theta[-2] = self.start_ratio


class Smear(nn.Module):
    """Add a share of the site before, which the content of a site opens.

        u_i ← u_i + λ g_i u_{i−1},    g_i = sigmoid(⟨w, u_i⟩),    nothing across a wall

    As in the fastest small language models (modded-nanogpt, nanochat): upwind transport with a
    content gate, bounded by nothing. Learned: λ and w, kept as one θ = (λ, w).

    >>> dp.Smear(16)(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        initial_ratio: Where λ g starts; 0 for the identity.
        device: Where the parameters live.
        dtype: Their precision.
    """

    is_causal, reach = True, 1

    def __init__(
        self,
        dim: int,
        *,
        initial_ratio: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim = check_positive("dim", dim)
        self.start_ratio = check_range("initial_ratio", initial_ratio, 0.0, 1.0)
        self.theta = nn.Parameter(torch.empty(dim + 1, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start with every gate half open."""
        with torch.no_grad():
            self.theta.zero_()
            self.theta[0] = 2 * self.start_ratio

    def forward(
        self,
        u: Field,
        valid_mask: Mask | None = None,
        segments: Segments | None = None,
        row_length: int | None = None,
    ) -> Field:
        """Smear [batch, length, dim] → the same; see `Diffusion.forward`."""
        check_field("u", u, dim=self.dim)
        theta: Tensor = self.theta.to(u.dtype)
        now, before = u[:, 1:], u[:, :-1]
        added = theta[0] * torch.sigmoid(now @ theta[1:])[..., None] * before
        edges = open_edges(u, valid_mask=valid_mask, segments=segments, row_length=row_length)
        if edges is not None:
            added = torch.where(edges[..., None], added, 0.0)
        return u + F.pad(added, (0, 0, 1, 0))

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.dim}, {self.theta.numel()} parameters"
