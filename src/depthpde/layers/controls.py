"""What diffusion must be compared with: other local mixings of the same reach.

Each has the signature of `Diffusion`, treats padding and ends as no-flux walls, and says how many
parameters it learns, so that a gain of diffusion can be told from a gain of any local mixing.
"""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from depthpde.errors import (
    check_factory,
    check_field,
    check_flag,
    check_one_of,
    check_positive,
    check_range,
)
from depthpde.layers.diffusion import Diffusion, choose_scheme
from depthpde.operators.average import exponential_average
from depthpde.operators.boundary import open_edges
from depthpde.operators.diffusion.dispatch import evolve, open_edge_mask
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.laplacian import difference
from depthpde.operators.stability import Scheme, check_ratio, free_from_ratio, multiplier
from depthpde.shapes import Field, Mask, Segments


class Start(StrEnum):
    """What a convolution does before it has learned anything."""

    IDENTITY = "identity"
    """Nothing."""
    BLUR = "blur"
    """One step of diffusion."""
    HEAT = "heat"
    """As many steps of diffusion as it reaches sites; for `LearnedStencil`."""


class DepthwiseConv(nn.Module):
    """Convolve every feature with a free kernel of its own.

        u_i ← (Σ_k w_k) u_i + Σ_k w_k (u_{i+k} − u_i),    differences across walls left out

    Learned: `width` numbers for each feature, bounded by nothing. Written in differences, so that
    a site beyond a wall counts as the site itself, as in no-flux diffusion; started at the blur it
    *is* `Diffusion` with that ratio.

    >>> layer = dp.DepthwiseConv(16, start="blur")
    >>> layer(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        width: Number of taps, odd; a causal layer looks at this site and width − 1 before it.
        start: "identity", or "blur" for the diffusion stencil.
        start_ratio: Ratio of the blur to start from.
        causal: Never show a site its future.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        width: int = 3,
        start: Start | str = Start.IDENTITY,
        start_ratio: float = 1 / 8,
        causal: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.width = check_positive("dim", dim), check_positive("width", width)
        if width % 2 == 0:
            raise ValueError(f"`width` must be odd, got {width}; use {width - 1} or {width + 1}")
        self.start = check_one_of("start", start, Start)
        self.is_causal = check_flag("causal", causal)
        if self.start is Start.HEAT:
            raise ValueError(
                "`start` must be 'identity' or 'blur' for a convolution, got 'heat'; "
                "use LearnedStencil(bound=None), which starts as heat flow"
            )
        self.start_ratio = check_range("start_ratio", start_ratio, 0.0, 0.5)
        check_factory(device, dtype)
        self.weight = nn.Parameter(torch.empty(width, dim, device=device, dtype=dtype))
        self.reset_parameters()

    @property
    def offsets(self) -> list[int]:
        """Which site each tap looks at, relative to its own."""
        first = 1 - self.width if self.is_causal else -(self.width // 2)
        return list(range(first, first + self.width))

    @property
    def reach(self) -> int:
        """How many sites away one call looks."""
        return max(abs(offset) for offset in self.offsets)

    def reset_parameters(self) -> None:
        """Start as the identity or as the blur."""
        with torch.no_grad():
            self.weight.zero_()
            self.weight[self.offsets.index(0)] = 1
            if self.start is Start.BLUR and self.width > 1:
                near = [offset for offset in self.offsets if abs(offset) == 1]
                for offset in near:
                    self.weight[self.offsets.index(offset)] = self.start_ratio
                self.weight[self.offsets.index(0)] -= self.start_ratio * len(near)

    def forward(
        self,
        u: Field,
        valid_mask: Mask | None = None,
        segments: Segments | None = None,
        row_length: int | None = None,
    ) -> Field:
        """Convolve [batch, length, dim] → the same; see `Diffusion.forward`."""
        check_field("u", u, dim=self.dim)
        weight = self.weight.to(u.dtype)
        out = weight.sum(dim=0) * u
        for offset, tap in zip(self.offsets, weight, strict=True):
            gap = abs(offset)
            if gap == 0 or gap >= u.shape[1]:
                continue
            edges = open_edges(
                u, valid_mask=valid_mask, segments=segments, row_length=row_length, dilation=gap
            )
            change = difference(u, dilation=gap)
            if edges is not None:
                change = torch.where(edges[..., None], change, 0.0)
            pad = (0, 0, 0, gap) if offset > 0 else (0, 0, gap, 0)
            out = out + (tap if offset > 0 else -tap) * F.pad(change, pad)
        return out

    def transfer_function(self, omega: Tensor) -> Tensor:
        """Give H(ω) of every feature by formula, [modes, dim], complex.

        H(ω) = Σ_k w_k e^{iωk}
        """
        offsets = torch.tensor(self.offsets, dtype=omega.dtype)
        waves = torch.exp(1j * omega[:, None] * offsets)
        return waves @ self.weight.detach().to(waves.dtype)

    def extra_repr(self) -> str:
        """Describe the kernel."""
        count = self.weight.numel()
        return f"{self.dim}, width={self.width}, start={self.start.value}, {count} parameters"


class Blur(nn.Module):
    """Diffuse with a fixed ratio: the stencil without the learning.

        u ← u + r Δu,    r fixed

    Learns nothing.

    >>> layer = dp.Blur(16, ratio=0.25)
    >>> layer(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        ratio: r; by default where `Diffusion` starts.
        steps: PDE steps of one call.
        causal: Never show a site its future (upwind).
    """

    def __init__(
        self, dim: int, *, ratio: float | None = None, steps: int = 1, causal: bool = False
    ) -> None:
        super().__init__()
        self.dim = check_positive("dim", dim)
        scheme = choose_scheme(None, causal=causal)
        self.problem = Problem(steps=check_positive("steps", steps), scheme=scheme)
        start = (1 / 4 if causal else 1 / 8) if ratio is None else ratio
        self.start_ratio = check_range("ratio", start, 0.0, 1.0)
        check_ratio(torch.tensor(self.start_ratio, device="cpu"), scheme)
        self.register_buffer("fixed", torch.empty(()), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the fixed ratio, where memory was only laid out (a layer built on ``meta``)."""
        nn.init.constant_(self.ratio, self.start_ratio)

    @property
    def ratio(self) -> Tensor:
        """The fixed ratio, a scalar."""
        return self.get_buffer("fixed")

    @property
    def is_causal(self) -> bool:
        """Whether no site sees its future."""
        return self.problem.scheme is Scheme.UPWIND

    @property
    def reach(self) -> int:
        """How many sites away one call looks."""
        return self.problem.steps

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
        return evolve(u, self.ratio.reshape(1, 1, 1), edges, self.problem)

    def transfer_function(self, omega: Tensor) -> Tensor:
        """Give H(ω) by formula, [modes, dim], complex."""
        ratio = self.ratio.expand(self.dim)
        return multiplier(self.problem.scheme, ratio, omega, steps=self.problem.steps)

    def extra_repr(self) -> str:
        """Describe the step."""
        return f"{self.dim}, ratio={float(self.ratio):g}, 0 parameters"


class ExponentialAverage(nn.Module):
    """Average every feature over the past, forgetting exponentially; and over the future.

        y_i = Σ_{k≥0} q^k u_{i−k} / Σ_{k≥0} q^k,    q = sigmoid(θ),  only valid sites counted

    Learned: the memory q in (0, 1) of every feature. A weighted mean of valid sites, so the range
    is never raised. Without `causal`, the mean of the two directions.

    >>> layer = dp.ExponentialAverage(16, causal=True)
    >>> layer(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        initial_memory: Where q starts.
        causal: Never show a site its future.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        initial_memory: float = 0.25,
        causal: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.is_causal = check_positive("dim", dim), check_flag("causal", causal)
        self.initial_memory = check_range("initial_memory", initial_memory, 1e-6, 1 - 1e-6)
        check_factory(device, dtype)
        self.theta = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start with the same memory for every feature."""
        nn.init.constant_(self.theta, free_from_ratio(self.initial_memory, 1.0))

    @property
    def memory(self) -> Tensor:
        """How much of the last average is kept, [dim]."""
        return torch.sigmoid(self.theta)

    def forward(
        self,
        u: Field,
        valid_mask: Mask | None = None,
        segments: Segments | None = None,
        row_length: int | None = None,
    ) -> Field:
        """Average [batch, length, dim] → the same; see `Diffusion.forward`."""
        check_field("u", u, dim=self.dim)
        opened = open_edges(u, valid_mask=valid_mask, segments=segments, row_length=row_length)
        return exponential_average(u, self.memory, opened, causal=self.is_causal)

    def extra_repr(self) -> str:
        """Describe the average."""
        return f"{self.dim}, causal={self.is_causal}, {self.theta.numel()} parameters"


class TokenShift(Diffusion):
    """Mix every site with the one before it.

        u_i ← (1 − r) u_i + r u_{i−1},    r = sigmoid(θ)

    Learned: r in (0, 1) for every feature. This is one upwind step; it has a name of its own
    because it is what RWKV calls it.

    >>> layer = dp.TokenShift(16)
    >>> layer(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Number of features.
        initial_ratio: Where r starts; 0 for the identity.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        initial_ratio: float = 0.25,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            dim, causal=True, bound=1.0, initial_ratio=initial_ratio, device=device, dtype=dtype
        )
