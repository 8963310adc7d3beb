"""FeedForward: the local term as a layer."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from depthpde.errors import (
    check_factory,
    check_field,
    check_one_of,
    check_positive,
    check_precision,
)
from depthpde.operators.reaction import feed_forward
from depthpde.shapes import Field


class Activation(StrEnum):
    """The nonlinearity of a feed-forward layer."""

    GELU = "gelu"
    """u Φ(u): smooth."""
    RELU = "relu"
    """max(u, 0)."""
    SILU = "silu"
    """u sigmoid(u)."""

    def __call__(self, u: Tensor) -> Tensor:
        """Apply it entry by entry."""
        if self is Activation.RELU:
            return F.relu(u)
        return F.silu(u) if self is Activation.SILU else F.gelu(u)


class FeedForward(nn.Module):
    """React at every site by the same two-layer network.

        R(u) = W_out σ(W_in u + b_in) + b_out

    Nothing passes between sites. Learned: both matrices and both biases.

    >>> reaction = dp.FeedForward(dim=16, hidden=32)
    >>> reaction(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Features of the field.
        hidden: Features between the two maps.
        activation: σ.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        activation: Activation | str = Activation.GELU,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim = check_positive("dim", dim)
        self.activation = check_one_of("activation", activation, Activation)
        check_positive("hidden", hidden)
        check_factory(device, dtype)
        self.enter = nn.Linear(dim, hidden, device=device, dtype=dtype)
        self.out = nn.Linear(hidden, dim, device=device, dtype=dtype)

    def forward(self, u: Field) -> Field:
        """Return the increment that the reaction makes of a field."""
        check_field("u", u, dim=self.dim)
        check_precision("u", u, self.enter.weight)
        return feed_forward(
            u,
            self.enter.weight,
            self.enter.bias,
            self.out.weight,
            self.out.bias,
            activation=F.gelu if self.activation is Activation.GELU else self.activation,
        )

    def extra_repr(self) -> str:
        """Describe what the sub-modules do not."""
        return f"activation={self.activation.value}"
