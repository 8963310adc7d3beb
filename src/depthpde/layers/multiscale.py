"""Several diffusions of different reach, mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from depthpde.errors import (
    check_factory,
    check_field,
    check_flag,
    check_name,
    check_positive,
    check_precision,
    check_range,
    shown,
)
from depthpde.layers.diffusion import Diffusion, choose_scheme
from depthpde.operators.boundary import is_alone
from depthpde.operators.diffusion import filtering
from depthpde.operators.diffusion.dispatch import open_edge_mask
from depthpde.operators.diffusion.gated import mix_filters
from depthpde.operators.diffusion.problem import accumulation_dtype, on_gpu
from depthpde.operators.diffusion.taps import mixed_taps
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, Mask, Segments


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionScale:
    """One member of a multi-scale diffusion.

    >>> scales = [dp.DiffusionScale(steps=1), dp.DiffusionScale(steps=8)]
    >>> layer = dp.MultiscaleDiffusion(16, scales=scales)
    """

    steps: int = 1
    """PDE steps: more steps, smoother."""
    dilation: int = 1
    """Distance between the sites that exchange."""
    initial_ratio: float | None = None
    """Where its ratio starts; half the bound by default."""

    def __post_init__(self) -> None:
        """Refuse what no diffusion takes."""
        check_positive("steps", self.steps)
        check_positive("dilation", self.dilation)
        if self.initial_ratio is not None:
            check_range("initial_ratio", self.initial_ratio, 0.0, 1e6)


SCALES = {
    "slow": DiffusionScale(steps=1),
    "medium": DiffusionScale(steps=4),
    "fast": DiffusionScale(steps=16),
}
"""The named scales: the same stencil for a heat time of about 1 : 4 : 16."""


class MultiscaleDiffusion(nn.Module):
    """Mix several diffusions of different reach with learned convex weights.

        u ← Σ_k w_k D_k u,    w = softmax(ω) ≥ 0,  Σ w_k = 1

    Learned: the ratio of every scale, bounded as in `Diffusion`, and the weights. All scales share
    one stability budget: each alone satisfies its bound, and a convex mix of maps that raise
    neither norm nor range raises neither. With `gated` the weights depend on the site's own content
    (softmax of a linear map): the range is still never raised, the mean no longer conserved.

    A weighted sum of one-step diffusions of one stencil is *one* such diffusion,
    Σ w_k (I + r_k L) = I + (Σ w_k r_k) L, so scales must differ in steps or dilation.

    Equal steps are a filter, and so is a weighted sum of filters: all scales of neighbouring sites
    are one pass over memory each way, whatever their number, gated or not.

    >>> layer = dp.MultiscaleDiffusion(16, scales="fast slow")
    >>> layer(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        scales: Names out of "fast medium slow", or `DiffusionScale` objects.
        gated: Let the content of a site choose its weights.
        scheme: What one step does; by default explicit, or upwind if causal.
        bound: Largest ratio that can be learned.
        initial_ratio: Where every ratio starts; 0 for the identity.
        causal: Never show a site its future.
        grid: Height and width, for diffusion over an image.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        scales: str | Sequence[DiffusionScale | str] = "fast medium slow",
        gated: bool = False,
        scheme: Scheme | str | None = None,
        bound: float | None = None,
        initial_ratio: float | None = None,
        causal: bool = False,
        grid: tuple[int, int] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim = check_positive("dim", dim)
        self.scales = read_scales(scales)
        chosen = choose_scheme(scheme, causal=causal)
        self.members = nn.ModuleList(
            Diffusion(
                dim,
                scheme=chosen,
                steps=scale.steps,
                dilation=scale.dilation,
                bound=bound,
                initial_ratio=scale.initial_ratio if initial_ratio is None else initial_ratio,
                grid=grid,
                device=device,
                dtype=dtype,
            )
            for scale in self.scales
        )
        check_factory(device, dtype)
        self.logits = nn.Parameter(torch.empty(len(self.scales), device=device, dtype=dtype))
        self.gate = None
        if check_flag("gated", gated):
            self.gate = nn.Linear(dim, len(self.scales), bias=False, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start with equal weights and a closed gate."""
        nn.init.zeros_(self.logits)
        if self.gate is not None:
            nn.init.zeros_(self.gate.weight)

    @property
    def weights(self) -> Tensor:
        """The weight of every scale where no gate speaks, [scales]."""
        return torch.softmax(self.logits, dim=0)

    @property
    def ratio(self) -> Tensor:
        """The ratio of every scale and feature, [scales, dim]."""
        return torch.stack([member.ratio.expand(self.dim) for member in self._each()])

    @property
    def is_causal(self) -> bool:
        """Whether no site sees its future."""
        return all(member.is_causal for member in self._each())

    @property
    def reach(self) -> int:
        """How many sites away one call looks."""
        return max(member.reach for member in self._each())

    def forward(
        self,
        u: Field,
        valid_mask: Mask | None = None,
        segments: Segments | None = None,
        row_length: int | None = None,
    ) -> Field:
        """Diffuse [batch, length, dim] → the same; see `Diffusion.forward`."""
        check_field("u", u, dim=self.dim)
        first = self._each()[0]
        compiled = u.device.type == "cpu" or on_gpu(u)
        if self._are_filters and compiled and not torch.compiler.is_exporting():
            edges = open_edge_mask(
                u, first.problem, valid_mask=valid_mask, segments=segments, row_length=row_length
            )
            if self.gate is not None:
                return self._mixed(u, edges)
            return filtering.convolve(u, self.taps, edges, first.problem, mirrored=True)
        return self._by_members(u, valid_mask, segments, row_length)

    @property
    def taps(self) -> Tensor:
        """The mix of all scales as one filter, [1, taps, dim], in float64."""
        steps = tuple(scale.steps for scale in self.scales)
        return mixed_taps(self.ratio, self.weights, steps, self.is_causal)

    def _mixed(self, u: Field, edges: Edges | None) -> Field:
        """Mix the scales' filters by the weights that each site chooses."""
        field = u if edges is None else torch.where(is_alone(edges, u.shape[1]), 0.0, u)
        weights = torch.softmax(self._logits(field), dim=-1)
        steps = tuple(scale.steps for scale in self.scales)
        return mix_filters(u, self.ratio, weights, edges, self._each()[0].problem, steps)

    def _logits(self, field: Field) -> Tensor:
        """Give the weights' logits, [scales] or, gated, [batch, length, scales]."""
        if self.gate is None:
            return self.logits
        check_precision("u", field, self.gate.weight)
        return self.logits + self.gate(field)

    @property
    def _are_filters(self) -> bool:
        """Whether all scales step between neighbouring sites."""
        problem = self._each()[0].problem
        return (
            self._each()[0].grid is None
            and problem.scheme in (Scheme.EXPLICIT, Scheme.UPWIND)
            and all(scale.dilation == 1 for scale in self.scales)
        )

    def _by_members(
        self,
        u: Field,
        valid_mask: Mask | None,
        segments: Segments | None,
        row_length: int | None,
    ) -> Field:
        """Mix the members' results; what no scale changes (padding) is left alone to the bit."""
        dtype = accumulation_dtype(u.dtype)  # differences outgrow half precision
        alone = self._alone(u, valid_mask, segments, row_length)
        field = u if alone is None else torch.where(alone, 0.0, u)
        weights = torch.softmax(self._logits(field), dim=-1)
        change = torch.zeros_like(u, dtype=dtype)
        for k, member in enumerate(self._each()):
            gap = member(field, valid_mask, segments, row_length).to(dtype) - field.to(dtype)
            change = torch.addcmul(change, weights[..., k, None].to(dtype), gap)
        if alone is None:
            return (field.to(dtype) + change).to(u.dtype)
        return torch.where(alone, u, (field.to(dtype) + change).to(u.dtype))

    def _alone(
        self,
        u: Field,
        valid_mask: Mask | None,
        segments: Segments | None,
        row_length: int | None,
    ) -> Tensor | None:
        """Tell which sites exchange with none at any scale, [batch, length, 1]."""
        if self._each()[0].grid is not None:
            return None if valid_mask is None else ~valid_mask[..., None]
        alone = None
        for member in self._each():
            edges = open_edge_mask(
                u, member.problem, valid_mask=valid_mask, segments=segments, row_length=row_length
            )
            if edges is None:
                return None
            mine = is_alone(edges, u.shape[1], member.problem.dilation)
            alone = mine if alone is None else alone & mine
        return alone

    def transfer_function(self, omega: Tensor) -> Tensor:
        """Give H(ω) of the mix by formula, [modes, dim], complex."""
        if self.gate is not None:
            raise ValueError("`transfer_function` is of a linear layer; a gated one has none")
        parts = torch.stack([member.transfer_function(omega) for member in self._each()])
        return (self.weights.detach().to(parts.dtype)[:, None, None] * parts).sum(dim=0)

    def _each(self) -> list[Diffusion]:
        return list(self.members)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        """Describe the scales."""
        parts = [f"{scale.steps}×{scale.dilation}" for scale in self.scales]
        return f"{self.dim}, steps×dilation {', '.join(parts)}"


def read_scales(scales: str | Sequence[DiffusionScale | str]) -> tuple[DiffusionScale, ...]:
    """Read scales from their names, and refuse those that collapse into one."""
    if not isinstance(scales, str | Sequence):
        raise ValueError(f"`scales` must be names or DiffusionScale objects, got {shown(scales)}")
    members = tuple(
        SCALES[check_name("scales", each, SCALES)] if isinstance(each, str) else each
        for each in (scales.split() if isinstance(scales, str) else scales)
    )
    if not members:
        raise ValueError(
            f"`scales` must name at least one scale out of {', '.join(SCALES)}, got ''"
        )
    seen: set[tuple[int, int]] = set()
    for scale in members:
        if not isinstance(scale, DiffusionScale):
            raise ValueError(
                f"`scales` must be names or DiffusionScale objects, got {shown(scale)}"
            )
        key = (check_positive("steps", scale.steps), check_positive("dilation", scale.dilation))
        if key in seen:
            raise ValueError(
                f"`scales` must differ in steps or dilation, got two with steps={key[0]}, "
                f"dilation={key[1]}: mixed, one-step diffusions of one stencil are one diffusion, "
                "Σ w_k (I + r_k L) = I + (Σ w_k r_k) L; change steps or dilation of one"
            )
        seen.add(key)
    return members
