"""The learned ratio: a free parameter that cannot leave its bound."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn.modules import module as every

from depthpde.errors import check_factory, check_one_of, check_positive, check_range
from depthpde.operators.diffusion.problem import accumulation_dtype, as_dtype
from depthpde.operators.stability import (
    Scheme,
    free_from_ratio,
    ratio_bounds,
    ratio_from_free,
    ratio_from_projection,
)
from depthpde.shapes import Field

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


class HeldRatio:
    """A ratio worked out once for many sites of one sequence.

    It serves while θ is what it was and nothing is hooked to the layer or to its ratio: who changes
    a parameter in the middle of a sequence by `.data`, of which torch keeps no count, is not seen
    before the next one.

    Args:
        layer: What learns the ratio, as its `free`.
        u: A site of the sequence.
    """

    def __init__(self, layer: nn.Module, u: Field) -> None:
        free = layer.get_submodule("free")
        theta = free.get_parameter("theta")
        self.layer, self.modules, self.parameters = layer, layer._modules, free._parameters
        self.free, self.theta, self.version, self.dtype = free, theta, theta._version, u.dtype
        self.ratio = as_dtype(free().detach(), accumulation_dtype(u.dtype))
        # Looked at for every site, so they stand together here.
        self.hooks = (
            layer._forward_hooks, layer._forward_pre_hooks,
            free._forward_hooks, free._forward_pre_hooks,
            every._global_forward_hooks, every._global_forward_pre_hooks,
        )  # fmt: skip

    def serves(self, layer: nn.Module) -> bool:
        """Tell whether the layer would compute the same ratio now, and nobody reads along."""
        return (
            layer is self.layer
            and self.modules["free"] is self.free
            and self.parameters["theta"] is self.theta
            and self.theta._version == self.version
            and not any(self.hooks)
        )

    def kept(self, u: Field) -> Field:
        """Copy a site in the precision that the next one is computed in."""
        return u.clone() if u.dtype is self.ratio.dtype else u.to(self.ratio.dtype)

    def __deepcopy__(self, memo: object) -> HeldRatio:
        """Stay with the layer where a sequence is copied: nothing here ever changes."""
        return self
