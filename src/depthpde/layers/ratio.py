"""The learned ratio: a free parameter that cannot leave its bound."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor, nn

from depthpde.errors import check_factory, check_one_of, check_positive, check_range
from depthpde.operators.stability import (
    Scheme,
    free_from_ratio,
    ratio_bounds,
    ratio_from_free,
    ratio_from_projection,
)

UNBOUNDED_DEFAULT = 1.0
"""Largest ratio a layer may learn by default where the scheme itself has no bound."""


class Per(StrEnum):
    """How many ratios a layer learns."""

    FEATURE = "feature"
    HEAD = "head"
    SCALAR = "scalar"


def layer_bound(scheme: Scheme, bound: float | None, dimensions: int = 1) -> float:
    """Give the bound of a layer: the one asked for, or that up to which no mode changes sign."""
    bounds = ratio_bounds(scheme, dimensions)
    if bound is None:
        return min(bounds.sign, UNBOUNDED_DEFAULT)
    hard = min(bounds.stable, 1e6)
    advice = f"{scheme.value} is unstable beyond {bounds.stable:g}"
    return check_range("bound", bound, 1e-12, hard, advice=advice)


class BoundedRatio(nn.Module):
    """A ratio for each feature, head, or all features, learned inside [0, bound].

        r = bound · sigmoid(θ),  or, started at 0:   r = min(max(θ, 0), bound) with ∂r/∂θ = 1

    Learned: `theta`. Whatever its value, 0 ≤ r ≤ bound. The second form begins at exactly r = 0,
    where the layer is the identity, and learns from the first update on. A θ of one form means
    nothing to the other: load weights into a layer built as the one they were saved from.

    Args:
        dim: Number of features.
        bound: The ratio never exceeds this.
        initial_ratio: Where it starts; 0 chooses the second form.
        per: One ratio per feature, per head, or one for all.
        num_heads: Number of heads, for `per="head"`.
        device: Where the parameter lives.
        dtype: Its precision.
    """

    def __init__(
        self,
        dim: int,
        bound: float,
        initial_ratio: float,
        *,
        per: Per | str = Per.FEATURE,
        num_heads: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.bound = check_positive("dim", dim), bound
        self.initial_ratio = check_range("initial_ratio", initial_ratio, 0.0, bound)
        self.per = check_one_of("per", per, Per)
        if dim % check_positive("num_heads", num_heads):
            raise ValueError(f"`num_heads` must divide dim = {dim}, got {num_heads}")
        groups = {Per.FEATURE: dim, Per.HEAD: num_heads, Per.SCALAR: 1}[self.per]
        check_factory(device, dtype)
        self.theta = nn.Parameter(torch.empty(groups, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start every ratio at `initial_ratio`."""
        start = 0.0
        if self.initial_ratio > 0:
            start = free_from_ratio(self.initial_ratio, self.bound)
        nn.init.constant_(self.theta, start)

    @property
    def form(self) -> str:
        """How θ becomes the ratio: ``sigmoid``, or ``projection`` where it started at 0."""
        return "sigmoid" if self.initial_ratio > 0 else "projection"

    def forward(self) -> Tensor:
        """Give the ratios, [dim], or [1] if one serves all features."""
        to_ratio = ratio_from_free if self.initial_ratio > 0 else ratio_from_projection
        ratio = to_ratio(self.theta, self.bound)
        if self.per is Per.HEAD:
            ratio = ratio.repeat_interleave(self.dim // ratio.shape[0])
        return ratio

    def extra_repr(self) -> str:
        """Describe the ratio."""
        return f"{self.theta.numel()} × [0, {self.bound:g}], starts at {self.initial_ratio:g}"
