"""How many groups the sites of a field form."""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.shapes import Field


def count_clusters(u: Field, *, apart: float = 1e-2) -> Tensor:
    """Count groups of sites that a chain of near neighbours connects.

        x ~ y  where  ‖u(x) − u(y)‖ ≤ apart · mean‖u‖,    clusters = components of the graph

    Args:
        u: The field.
        apart: How far two sites of one cluster may stand apart, in units of the mean norm.

    Returns:
        [batch], whole numbers as floats.
    """
    near = torch.cdist(u, u) <= apart * u.norm(dim=-1).mean(dim=1)[:, None, None]
    length = u.shape[1]
    label = torch.arange(length, device=u.device).expand(u.shape[0], length)
    while True:  # every site takes the least label of its neighbours, until none changes
        least = torch.where(near, label[:, None, :], length).amin(dim=-1)
        least = least.gather(1, least)
        if torch.equal(least, label):
            break
        label = least
    own = torch.arange(length, device=u.device)
    return (label == own).sum(dim=1).to(torch.float64)
