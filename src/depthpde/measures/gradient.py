"""Gradient: how the loss speaks to each layer.

    of a group            ‖g‖ = √Σ ‖∂loss/∂w‖²       over the weights w of the group
    on the stream         g_l = ∂loss/∂u_l           u_l the field after l blocks
    amplification         ‖g_l‖ / ‖g_L‖              by what going back from the end multiplies

All are of the gradients as they are given: take them before clipping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.linalg import vector_norm

from depthpde.measures.tokens import real_field
from depthpde.shapes import Field, Mask

PART = 2**20
"""Entries that are measured at once."""


def gradient_norm(gradients: Sequence[Tensor]) -> float:
    """Measure several gradients as one vector.

        √Σ ‖g‖²

    In double precision, so that large single-precision gradients do not overflow.
    """
    if not gradients:
        return 0.0
    return float(vector_norm(torch.stack([precise_norm(each) for each in gradients])))


def precise_norm(gradient: Tensor) -> Tensor:
    """Measure one gradient in double precision, a large one in parts.

        ‖g‖

    torch copies what it sums in another format: of a whole embedding that would be twice its size.

    Args:
        gradient: Of any shape; a sparse one counts the entries that it holds.
    """
    values = gradient.detach()
    values = values.coalesce().values() if values.is_sparse else values
    if values.numel() <= PART:
        return vector_norm(values, dtype=torch.float64)
    parts = torch.split(values.reshape(-1), PART)
    return vector_norm(torch.stack([vector_norm(each, dtype=torch.float64) for each in parts]))


def norms_by_group(
    gradients: Mapping[str, Tensor | None], group: Callable[[str], str]
) -> dict[str, float]:
    """Measure the gradients of each group of weights, in the order they come.

    Args:
        gradients: Gradient by the weight's name; None where the weight has none, which counts
            as zero.
        group: Gives the group of a weight by its name: its block, or its kind.
    """
    members: dict[str, list[Tensor]] = {}
    for name, gradient in gradients.items():
        found = members.setdefault(group(name), [])
        if gradient is not None:
            found.append(gradient)
    return {name: gradient_norm(found) for name, found in members.items()}


def stream_norms(gradients: Sequence[Field], valid_mask: Mask | None = None) -> Tensor:
    """Measure the gradient on the stream at every depth.

        ‖g_l‖,    g_l = ∂loss/∂u_l    over real tokens

    Args:
        gradients: One gradient a depth, from the embedding to the last block.
        valid_mask: True = real token.

    Returns:
        [depths], in double precision.
    """
    fields = (real_field("gradients", each, valid_mask) for each in gradients)
    return torch.stack([vector_norm(each, dtype=torch.float64) for each in fields])


def amplification(gradients: Sequence[Field], valid_mask: Mask | None = None) -> Tensor:
    """Measure by what the way back from the end multiplies the gradient.

        a_l = ‖g_l‖ / ‖g_L‖,    a_L = 1

    Far above 1 at the first depth: gradients explode; far below: they vanish.

    Returns:
        [depths]; NaN where no gradient reaches the end.
    """
    norms = stream_norms(gradients, valid_mask)
    return norms / torch.where(norms[-1] > 0, norms[-1], torch.nan)
