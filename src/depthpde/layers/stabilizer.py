"""What keeps the field bounded: where the norm is, which one, and the residual step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor, nn

from depthpde.config import Settings
from depthpde.errors import check_one_of, check_positive, check_range
from depthpde.layers.dropout import dropout
from depthpde.shapes import Field


class Norm(StrEnum):
    """Where a block normalises."""

    PRE = "pre"
    """The input of each term: u ← u + F(S u)."""
    POST = "post"
    """The stream after each term: u ← S(u + F(u))."""
    NONE = "none"
    """Nowhere: u ← u + F(u)."""


class NormKind(StrEnum):
    """Which projection a normalization is."""

    LAYER = "layer"
    """Zero mean and unit variance over features."""
    RMS = "rms"
    """Unit mean square over features."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stabilizer(Settings):
    """What keeps a block's field bounded.

    u ← S(gain · u + F(u))        post-norm; gain = 1, or (2 blocks)^¼ with DeepNorm

    >>> config = dp.ModelConfig(stabilizer=dp.Stabilizer(norm="post", deepnorm=True))
    """

    norm: Norm | str = Norm.PRE
    """Where the norm is, or none."""
    kind: NormKind | str = NormKind.LAYER
    """Which norm."""
    residual: bool = True
    """Whether a term adds to the field; without, it replaces it: u ← F(u)."""
    deepnorm: bool = False
    """Whether the stream is scaled up and the branches' first weights down, with the depth."""

    def check(self) -> None:
        """Refuse a stabilizer that contradicts itself."""
        if self.deepnorm and not (self.residual and self.norm is Norm.POST):
            raise ValueError(
                "`deepnorm` must go with `residual` and the post-norm, got "
                f"residual={self.residual} and norm={str(self.norm)!r}; use norm='post'"
            )

    def stream_gain(self, blocks: int) -> float:
        """Return what multiplies the stream before a term is added.

        gain = (2 blocks)^¼ with DeepNorm, else 1
        """
        return (2.0 * check_positive("blocks", blocks)) ** 0.25 if self.deepnorm else 1.0

    def branch_gain(self, blocks: int) -> float:
        """Return what multiplies the first weights of values, outputs and the feed-forward.

        gain = (8 blocks)^−¼ with DeepNorm, else 1
        """
        return (8.0 * check_positive("blocks", blocks)) ** -0.25 if self.deepnorm else 1.0


def build_norm(
    kind: NormKind | str,
    dim: int,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> nn.Module:
    """Return the normalization of a field, as the operators of the same name define it.

    layer norm = gain · Π_sphere Π_mean-free u + shift        RMS norm = gain · Π_sphere u
    """
    check_positive("dim", dim)
    if check_one_of("kind", kind, NormKind) is NormKind.RMS:
        return nn.RMSNorm(dim, eps=1e-5, device=device, dtype=dtype)
    return nn.LayerNorm(dim, eps=1e-5, device=device, dtype=dtype)


class Dropout(nn.Dropout):
    """Drop numbers in training as ``nn.Dropout`` does, from one seed a call.

        u_i ← 0 with probability p, else u_i / (1 − p)

    Learns nothing.

    Example:
        >>> Dropout(0.1).eval()(torch.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the field, in training with a share of it dropped."""
        return dropout(input, self.p) if self.training else input


class Residual(nn.Module):
    """Take the Euler step that adds a term to the field.

        u ← gain · u + dropout(F(u))        without the residual:  u ← dropout(F(u))

    Learns nothing.

    Args:
        gain: What multiplies the stream; 1 except with DeepNorm.
        on: Whether the stream is kept.
        dropout: Share of the increment dropped in training.
    """

    def __init__(self, *, gain: float = 1.0, on: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.gain = gain
        self.on = on
        self.dropout = check_range("dropout", dropout, 0.0, 1.0)

    def forward(self, u: Field, increment: Field) -> Field:
        """Return the field after the step."""
        if self.training and self.dropout:
            increment = dropout(increment, self.dropout)
        if not self.on:
            return increment
        return u + increment if self.gain == 1.0 else self.gain * u + increment

    def extra_repr(self) -> str:
        """Describe how the step is taken."""
        return f"gain={self.gain:.4g}, on={self.on}, dropout={self.dropout}"
