"""A learned finite-difference stencil that cannot amplify."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor, nn

from depthpde.errors import (
    check_factory,
    check_field,
    check_flag,
    check_grid,
    check_mask,
    check_one_of,
    check_positive,
    check_range,
)
from depthpde.layers.controls import Start
from depthpde.operators.boundary import open_edges
from depthpde.operators.diffusion import diffusion_2d, filtering
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.diffusion.taps import heat_taps
from depthpde.operators.stability import Scheme, ratio_bounds
from depthpde.shapes import Field, Mask, Segments


class TapBound(StrEnum):
    """What keeps the taps from amplifying."""

    L1 = "l1"
    """Signed taps, Σ|a_k| ≤ 1."""
    CONVEX = "convex"
    """a_k > 0, Σ a_k = 1: a weighted mean."""
    FREE = "free"
    """Nothing: a free convolution, the control."""


class LearnedStencil(nn.Module):
    """Filter every feature with a wide stencil of its own that starts as heat flow.

        u_i ← Σ_k a_k (Eu)_{i+k},    |k| ≤ reach        a = θ / max(1, Σ|θ|)        (bound="l1")

    E reflects every piece of the sequence at its walls (causal: repeats its first site). Learned:
    2·reach + 1 signed taps a feature (reach + 1 if symmetric or causal). Whatever their values,
    every row of the map sums to at most 1 in size, walls included: the layer raises no maximum.
    On a ring, and between walls for symmetric taps, it raises no 2-norm either; asymmetric taps at
    a wall can (docs/equations.md §17). "convex" taps are a weighted mean, a = softmax(θ): the range
    is kept, and with `symmetric` the mean is conserved. "free" bounds nothing: a free convolution.
    A site that exchanges with no other, so every padded one, keeps its value.

        >>> import torch, depthpde as dp
        >>> dp.LearnedStencil(8, reach=4)(torch.randn(2, 20, 8)).shape
        torch.Size([2, 20, 8])

    Args:
        dim: Number of features.
        reach: How many sites away the stencil looks.
        start: "heat" begins as `reach` diffusion steps, "blur" as one, "identity" as nothing.
        start_ratio: Ratio of those steps; by default where `Diffusion` starts.
        bound: "l1", "convex" or "free"; use "free" (or None) as the control.
        symmetric: Let both directions share their taps.
        causal: Never show a site its future: past taps only.
        grid: Height and width of an image; the stencil acts along its rows, then its columns.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        reach: int = 16,
        start: Start | str = Start.HEAT,
        start_ratio: float | None = None,
        bound: TapBound | str | None = TapBound.L1,
        symmetric: bool = False,
        causal: bool = False,
        grid: tuple[int, int] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.reach = check_positive("dim", dim), check_positive("reach", reach)
        self.start = check_one_of("start", start, Start)
        chosen = TapBound.FREE if bound is None else check_one_of("bound", bound, TapBound)
        self.bound = None if chosen is TapBound.FREE else chosen
        self.symmetric, self.grid = check_flag("symmetric", symmetric), None
        self.is_causal = check_flag("causal", causal)
        if grid is not None:
            self.grid = check_grid("grid", grid)
        self._check_options()
        self.problem = Problem(scheme=Scheme.UPWIND if causal else Scheme.EXPLICIT)
        bounds = ratio_bounds(self.problem.scheme)
        ratio = bounds.sign / 2 if start_ratio is None else start_ratio
        self.start_ratio = check_range("start_ratio", ratio, 0.0, bounds.stable)
        rows = reach + 1 if symmetric or causal else 2 * reach + 1
        check_factory(device, dtype)
        self.theta = nn.Parameter(torch.empty(rows, dim, device=device, dtype=dtype))
        self.reset_parameters()

    def _check_options(self) -> None:
        if self.bound is TapBound.CONVEX and self.start is Start.IDENTITY:
            raise ValueError(
                "`start` must be 'heat' or 'blur' for convex taps, got 'identity': positive taps "
                "are never zero; use bound='l1'"
            )
        if self.is_causal and (self.symmetric or self.grid is not None):
            raise ValueError(
                "`causal` must be False with `symmetric` or `grid`, got True: a causal stencil has "
                "one direction along one axis; leave the other option out"
            )

    def reset_parameters(self) -> None:
        """Start as heat flow, as one step of it, or as the identity."""
        steps = {Start.HEAT: self.reach, Start.BLUR: 1, Start.IDENTITY: 0}[self.start]
        ratio = torch.full((1, 1, 1), self.start_ratio, dtype=torch.float64)
        taps = heat_taps(ratio, steps, causal=self.is_causal)[0]
        missing = self.reach - steps
        cache = torch.zeros(missing, 1, dtype=torch.float64)
        taps = torch.cat((cache, taps) if self.is_causal else (cache, taps, cache))
        if self.symmetric:
            taps = taps[self.reach :]
        if self.bound is TapBound.CONVEX:
            taps = taps.clamp(min=1e-12).log()
        with torch.no_grad():
            self.theta.copy_(taps.expand(-1, self.dim))

    @property
    def taps(self) -> Tensor:
        """The taps from the farthest past on, [taps, dim]; the own site's is at `reach`."""
        theta: Tensor = self.theta
        if self.symmetric:
            theta = torch.cat((theta[1:].flip(0), theta))
        if self.bound is TapBound.CONVEX:
            return torch.softmax(theta, dim=0)
        if self.bound is TapBound.L1:
            return theta / theta.abs().sum(dim=0).clamp(min=1)
        return theta

    def forward(
        self,
        u: Field,
        valid_mask: Mask | None = None,
        segments: Segments | None = None,
        row_length: int | None = None,
    ) -> Field:
        """Filter [batch, length, dim] → the same; see `Diffusion.forward`."""
        check_field("u", u, dim=self.dim)
        if self.grid is not None:
            grid = diffusion_2d.plane_of(u, self.grid, segments, row_length)
            if valid_mask is not None:
                check_mask("valid_mask", valid_mask, u)
            return self._over_grid(u, grid, valid_mask)
        edges = open_edges(u, valid_mask=valid_mask, segments=segments, row_length=row_length)
        return filtering.convolve(u, self.taps[None], edges, self.problem, mirrored=self.symmetric)

    def _over_grid(self, u: Field, grid: tuple[int, int], valid_mask: Mask | None) -> Field:
        """Filter along the rows, then along the columns."""
        (height, width), (batch, length, dim) = grid, u.shape
        if height * width != length:
            raise ValueError(
                f"`grid` must have as many sites as the field, {length}, got {height} × {width} = "
                f"{height * width}; pad the image or pass its true height and width"
            )
        for size, other in ((width, height), (height, width)):  # each turn transposes the image
            lines = u.reshape(batch * other, size, dim)
            mask = None if valid_mask is None else valid_mask.reshape(batch * other, size)
            edges = open_edges(lines, valid_mask=mask)
            lines = filtering.convolve(
                lines, self.taps[None], edges, self.problem, mirrored=self.symmetric
            )
            u = lines.reshape(batch, other, size, dim).transpose(1, 2).reshape(u.shape)
            if valid_mask is not None:
                turned = valid_mask.reshape(batch, other, size).transpose(1, 2)
                valid_mask = turned.reshape(batch, length)
        return u

    def transfer_function(self, omega: Tensor) -> Tensor:
        """Give H(ω) of every feature by formula, [modes, dim], complex.

        H(ω) = Σ_k a_k e^{iωk}
        """
        if self.grid is not None:
            raise ValueError("`transfer_function` is of one frequency; a grid has two")
        last = 1 if self.is_causal else self.reach + 1
        offsets = torch.arange(-self.reach, last, dtype=omega.dtype, device=omega.device)
        waves = torch.exp(1j * omega[:, None] * offsets)
        return waves @ self.taps.detach().to(waves.dtype)

    def extra_repr(self) -> str:
        """Describe the stencil."""
        bound = "free" if self.bound is None else self.bound.value
        parts = [f"{self.dim}", f"reach={self.reach}", bound, f"start={self.start.value}"]
        parts += [name for name in ("symmetric",) if self.symmetric]
        return ", ".join([*parts, f"{self.theta.numel()} parameters"])
