"""D: the diffusion layer, and its content-dependent form."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from depthpde.errors import (
    check_factory,
    check_field,
    check_flag,
    check_grid,
    check_one_of,
    check_positive,
)
from depthpde.layers.ratio import BoundedRatio, HeldRatio, Per, layer_bound
from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion import diffusion_2d
from depthpde.operators.diffusion.adaptive import diffuse_adaptive
from depthpde.operators.diffusion.conductance import edge_distance
from depthpde.operators.diffusion.dispatch import check_ends, check_problem, evolve, open_edge_mask
from depthpde.operators.diffusion.free_step import evolve_free
from depthpde.operators.diffusion.problem import Problem, accumulation_dtype
from depthpde.operators.diffusion.stencil import step_behind
from depthpde.operators.stability import Scheme, multiplier
from depthpde.shapes import Edges, Field, Mask, Segments


def choose_scheme(scheme: Scheme | str | None, *, causal: bool) -> Scheme:
    """Choose the scheme of a layer, and refuse one that would show a site its future."""
    check_flag("causal", causal)
    if scheme is None:
        return Scheme.UPWIND if causal else Scheme.EXPLICIT
    chosen = check_one_of("scheme", scheme, Scheme)
    if causal and chosen is not Scheme.UPWIND:
        raise ValueError(
            f"`scheme` must be 'upwind' in a causal layer, got {chosen.value!r}: a symmetric "
            "stencil lets every site see its future; leave out `scheme`, or use causal=False"
        )
    return chosen


class Diffusion(nn.Module):
    """Diffuse a field along the sequence with a learned ratio.

        u ← u + r Δu,    r = bound · sigmoid(θ)        (the explicit scheme, one step)

    Learned: one ratio for each feature (or head, or one for all), which can never leave
    [0, bound]; by default the bound is the ratio up to which no mode changes sign (1/4 explicit).
    So the layer is never unstable: it does not raise the 2-norm, the Dirichlet energy or the
    range of any feature, and it conserves the mean of every sequence (upwind: the range alone;
    Crank–Nicolson keeps the range only while bound ≤ 1, as it is by default).
    Padding is a no-flux wall. `initial_ratio=0` makes the layer the identity to the bit, and it
    still learns.

    >>> layer = dp.Diffusion(16, steps=2)
    >>> layer(torch.randn(2, 10, 16), valid_mask=torch.ones(2, 10, dtype=torch.bool)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        per: One ratio per "feature", "head" or one "scalar" for all.
        num_heads: Number of heads, for `per="head"`.
        scheme: What one step does; by default explicit, or upwind if causal.
        steps: PDE steps of one call.
        dilation: Distance between the sites that exchange.
        boundary: What the ends of the sequence see.
        bound: Largest ratio that can be learned.
        initial_ratio: Where the ratio starts; half the bound by default.
        causal: Never show a site its future.
        grid: Height and width, for diffusion over an image laid out row by row.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        per: Per | str = Per.FEATURE,
        num_heads: int = 1,
        scheme: Scheme | str | None = None,
        steps: int = 1,
        dilation: int = 1,
        boundary: Boundary | str = Boundary.NO_FLUX,
        bound: float | None = None,
        initial_ratio: float | None = None,
        causal: bool = False,
        grid: tuple[int, int] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim = check_positive("dim", dim)
        self.grid = None if grid is None else check_grid("grid", grid)
        self.problem = Problem(
            steps=check_positive("steps", steps),
            scheme=choose_scheme(scheme, causal=causal),
            boundary=check_one_of("boundary", boundary, Boundary),
            dilation=check_positive("dilation", dilation),
            width=0 if self.grid is None else self.grid[1],
        )
        if grid is not None and self.problem.scheme not in (Scheme.EXPLICIT, Scheme.EXACT):
            raise ValueError(
                "`scheme` must be 'explicit' or 'exact' over a grid, "
                f"got {self.problem.scheme.value!r}"
            )
        if grid is not None and dilation != 1:
            raise ValueError(f"`dilation` must be 1 over a grid, got {dilation}; use more steps")
        check_ends(self.problem)
        limit = layer_bound(self.problem.scheme, bound, 1 if grid is None else 2)
        start = limit / 2 if initial_ratio is None else initial_ratio
        self.free = BoundedRatio(
            dim, limit, start, per=per, num_heads=num_heads, device=device, dtype=dtype
        )

    @property
    def ratio(self) -> Tensor:
        """The ratio r of each feature, [dim] (or [1] if one serves all)."""
        return self.free()

    @property
    def is_causal(self) -> bool:
        """Whether no site sees its future."""
        return self.problem.scheme is Scheme.UPWIND

    @property
    def reach(self) -> int:
        """How many sites away one call looks, in each direction that it looks in."""
        return self.problem.steps * self.problem.dilation

    @property
    def takes_before(self) -> bool:
        """Whether one site can be computed from itself and the one in front: decoding does so."""
        problem = self.problem
        return problem.scheme is Scheme.UPWIND and problem.steps == problem.dilation == 1

    def forward(
        self,
        u: Field,
        valid_mask: Mask | None = None,
        segments: Segments | None = None,
        row_length: int | None = None,
        before: Field | None = None,
    ) -> Field:
        """Diffuse [batch, length, dim] → the same.

        Args:
            u: The field.
            valid_mask: True = real token; padding is a wall and keeps its values.
            segments: One number per packed sequence.
            row_length: Width of an image whose rows must not mix; over a grid, the width of this
                call's image, where it is not the one that the layer was built for.
            before: The site in front of u, where u is one site and the layer `takes_before`.
        """
        check_field("u", u, dim=self.dim)
        if before is not None:
            return self._behind(u, before)
        if self.grid is not None:
            grid = diffusion_2d.plane_of(u, self.grid, segments, row_length)
            problem = self.problem if grid == self.grid else replace(self.problem, width=grid[1])
            ratio = self.ratio.reshape(1, 1, -1)
            return diffusion_2d.diffuse_checked(u, ratio, grid, valid_mask, problem)
        check_problem(self.problem, u)
        edges = open_edge_mask(
            u, self.problem, valid_mask=valid_mask, segments=segments, row_length=row_length
        )
        free = self.free
        if self._is_called(free):
            return evolve(u, self.ratio.reshape(1, 1, -1), edges, self.problem)
        projected = free.initial_ratio == 0  # one node from θ to the field
        return evolve_free(u, free.theta, free.bound, edges, self.problem, projected=projected)

    def _behind(self, u: Field, before: Field) -> Field:
        if before.shape != u.shape or u.shape[1] != 1 or not self.takes_before:
            raise ValueError(
                f"`before` must be one site, of the shape {[u.shape[0], 1, self.dim]} of the one "
                f"behind it and for one upwind step, got {list(before.shape)} for "
                f"{list(u.shape)}; give the layer all its sites at once"
            )
        free = self.free
        if self._is_called(free) or free.initial_ratio == 0:
            return step_behind(u, before, self.ratio)
        return step_behind(u, before, torch.sigmoid(free.theta), free.bound)

    def hold_ratio(self, u: Field) -> HeldRatio | None:
        """Work out the ratio for the sites behind u; None where every call must do so anew."""
        free = self.free
        own = type(self) is Diffusion and type(free) is BoundedRatio and "forward" not in vars(self)
        if not own or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return None
        theta = free._parameters.get("theta")
        # a tensor that stands in for the parameter during one call is no parameter
        held = isinstance(theta, nn.Parameter) and not theta.is_inference()
        return HeldRatio(self, u) if held else None

    @staticmethod
    def _is_called(free: nn.Module) -> bool:
        """Tell whether a ratio must be called: one of another kind, or one that is hooked."""
        return type(free) is not BoundedRatio or free.per is Per.HEAD or bool(free._forward_hooks)

    def transfer_function(self, omega: Tensor) -> Tensor:
        """Give H(ω) of every feature by formula, [modes, dim], complex."""
        if self.grid is not None:
            raise ValueError("`transfer_function` is of one frequency; a grid has two")
        problem = self.problem
        return multiplier(
            problem.scheme,
            self.ratio.detach().expand(self.dim),
            omega,
            steps=problem.steps,
            dilation=problem.dilation,
        )

    def extra_repr(self) -> str:
        """Describe the step."""
        problem = self.problem
        parts = [f"{self.dim}", problem.scheme.value, f"steps={problem.steps}"]
        if problem.dilation > 1:
            parts.append(f"dilation={problem.dilation}")
        if self.grid is not None:
            parts.append(f"grid={self.grid}")
        return ", ".join(parts)


class AdaptiveDiffusion(nn.Module):
    """Diffuse less across edges where the field changes much.

        u_i ← u_i + r_{i+½}(u_{i+1} − u_i) − r_{i−½}(u_i − u_{i−1})
        r_{i+½} = r · exp(−Σ_d w_d (u_{i+1,d} − u_{i,d})²),    0 ≤ r ≤ bound,  w_d ≥ 0

    Learned: the ratio r (one for all features, bounded as in `Diffusion`) and the sensitivity
    w_d of each feature. An edge's ratio is symmetric in its two sites and lies in [0, bound], so
    the step matrix is symmetric and doubly stochastic for bound ≤ 1/2: mean conserved, range and
    2-norm never raised (for the frozen ratio), edges preserved. With several steps the ratio is
    computed once, from the field that came in.

    >>> layer = dp.AdaptiveDiffusion(16)   # smooths less where neighbours differ
    >>> layer(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        steps: PDE steps of one call.
        bound: Largest ratio that can be learned.
        initial_ratio: Where the ratio starts; half the bound by default; 0 for the identity.
        causal: Never show a site its future (upwind).
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        steps: int = 1,
        bound: float | None = None,
        initial_ratio: float | None = None,
        causal: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim = check_positive("dim", dim)
        scheme = choose_scheme(None, causal=causal)
        self.problem = Problem(steps=check_positive("steps", steps), scheme=scheme)
        limit = layer_bound(scheme, bound)
        start = limit / 2 if initial_ratio is None else initial_ratio
        self.free = BoundedRatio(dim, limit, start, per=Per.SCALAR, device=device, dtype=dtype)
        check_factory(device, dtype)
        self.log_sensitivity = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start with a sensitivity of 1/dim for every feature."""
        nn.init.constant_(self.log_sensitivity, -math.log(self.dim))

    @property
    def ratio(self) -> Tensor:
        """The largest ratio an edge can have, [1]."""
        return self.free()

    @property
    def is_causal(self) -> bool:
        """Whether no site sees its future."""
        return self.problem.scheme is Scheme.UPWIND

    @property
    def reach(self) -> int:
        """How many sites away one call looks."""
        return self.problem.steps

    @property
    def sensitivity(self) -> Tensor:
        """The sensitivity w of every feature, [dim], in float32 or wider, and always finite."""
        free = self.log_sensitivity.to(accumulation_dtype(self.log_sensitivity.dtype))
        return free.clamp(max=math.log(torch.finfo(free.dtype).max) - 1).exp()

    def edge_ratio(self, u: Field, edges: Edges | None = None) -> Tensor:
        """Give the ratio of every edge, [batch, length − 1, 1]; a cut one has the largest."""
        distance = edge_distance(u, self.sensitivity, edges)
        return self.ratio * torch.exp(-distance)

    def forward(
        self,
        u: Field,
        valid_mask: Mask | None = None,
        segments: Segments | None = None,
        row_length: int | None = None,
    ) -> Field:
        """Diffuse [batch, length, dim] → the same; see `Diffusion.forward`."""
        check_field("u", u, dim=self.dim)
        edges = open_edge_mask(
            u, self.problem, valid_mask=valid_mask, segments=segments, row_length=row_length
        )
        if self.problem.steps == 1:
            return diffuse_adaptive(u, self.ratio, self.sensitivity, edges, self.problem)
        return evolve(u, self.edge_ratio(u, edges), edges, self.problem)

    def extra_repr(self) -> str:
        """Describe the step."""
        return f"{self.dim}, {self.problem.scheme.value}, steps={self.problem.steps}"
