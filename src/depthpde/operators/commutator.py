"""Does the order of two operators matter?

    [P, Q] u = P(Q u) − Q(P u)

Diffusion and attention both mix sites. Where they do not commute, a network that smooths after
attending is another network than one that attends after smoothing.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.linalg import vector_norm

from depthpde.operators.laplacian import laplacian_matrix
from depthpde.shapes import Field

Operator = Callable[[Field], Field]


def commutator(first: Operator, second: Operator, u: Field) -> Field:
    """Apply two operators in both orders and take the difference.

        [P, Q] u = P(Q u) − Q(P u)

    For any two maps of fields, linear or not. Zero for all u exactly where they commute.
    """
    return first(second(u)) - second(first(u))


def commutator_norm(first: Operator, second: Operator, u: Field) -> Tensor:
    """Measure how much the order of two operators matters for this field.

        ‖P(Q u) − Q(P u)‖ / ‖u‖

    Returns:
        [batch].
    """
    gap: Tensor = vector_norm(commutator(first, second, u), dim=(1, 2))
    size: Tensor = vector_norm(u, dim=(1, 2))
    return gap / size


def frozen_commutator(weights: Tensor, ratio: float) -> Tensor:
    """Write the commutator of one diffusion step with a frozen attention matrix as a matrix.

        [D_r, A] = [I + rL, A] = r (LA − AL)

    Exactly proportional to the ratio: the identity commutes with everything.

    Args:
        weights: The attention matrix A, [..., length, length].
        ratio: r.
    """
    matrix = laplacian_matrix(weights.shape[-1]).to(weights)
    return ratio * (matrix @ weights - weights @ matrix)
