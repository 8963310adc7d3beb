"""What the measurements of several claims share: fields to act on, norms, slopes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from depthpde.operators.laplacian import laplacian
from depthpde.seeds import generator
from depthpde.shapes import Field

LENGTH = 64
"""Sites of an ordinary test field."""


def random_field(name: str, *, batch: int = 1, length: int = LENGTH, dim: int = 4) -> Field:
    """Draw a white field in float64 from the stream that belongs to a claim."""
    shape = (batch, length, dim)
    return torch.randn(shape, generator=generator(0, "theory", name), dtype=torch.float64)


def explicit_step(u: Field, ratio: float) -> Field:
    """Take one explicit step of any ratio, stable or not.

    u ← u + r L u
    """
    return u + ratio * laplacian(u)


def matrix_of(operator: Callable[[Field], Field], length: int = LENGTH) -> Tensor:
    """Write a linear operator along the sequence as a dense matrix, column by column.

    M[:, j] = operator(e_j)
    """
    unit = torch.eye(length, dtype=torch.float64)[:, :, None]
    return operator(unit)[:, :, 0].mT


def jacobian_of(operator: Callable[[Field], Field], u: Field) -> Tensor:
    """Write the derivative of any map of fields as a dense matrix over all numbers of the field.

    J[a, b] = ∂ operator(u)_a / ∂u_b
    """

    def flat(v: Tensor) -> Tensor:
        return operator(v.reshape(u.shape)).flatten()

    jacobian = torch.autograd.functional.jacobian
    matrix: Tensor = jacobian(flat, u.flatten(), vectorize=True)  # type: ignore[no-untyped-call]
    return matrix


def spectral_norm(matrix: Tensor) -> float:
    """Give the largest factor by which a matrix can stretch a field.

    ‖M‖₂ = max ‖Mu‖ / ‖u‖
    """
    return float(torch.linalg.matrix_norm(matrix, ord=2))


def fit_slope(x: Tensor, y: Tensor) -> float:
    """Fit the slope of a straight line by least squares."""
    away = x - x.mean()
    return float((away * (y - y.mean())).sum() / away.square().sum())
