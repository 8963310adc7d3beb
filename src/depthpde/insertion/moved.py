"""Moved: a model whose layers are away from the identity, for one call.

    r = 0   →   r = bound / 2            other weights of inserted layers   w → w + δ

A layer at the identity mixes nothing, so it cannot be seen whether it would show a site its
future. The weights themselves are not touched: other tensors stand in their place during the call.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from depthpde import seeds
from depthpde.layers.ratio import BoundedRatio

SIZE = 0.1
"""Of the change of a weight that is no ratio, relative to 1 + |w|."""


def moved_weights(model: nn.Module, inside: str = "") -> dict[str, Tensor]:
    """Give the weights, by name, with which no layer is the identity.

    Args:
        model: Holds inserted layers, ratios of its own, or neither.
        inside: Submodule whose weights move too, whatever they belong to; "" for every one.
    """
    draw = seeds.generator(0, "moved")
    ratios = {
        f"{name}.theta".lstrip("."): module
        for name, module in model.named_modules()
        if isinstance(module, BoundedRatio)
    }
    found = {}
    for name, weight in model.named_parameters():
        if name in ratios:
            ratio = ratios[name]
            if ratio.form == "projection" and bool((weight <= 0).any()):
                found[name] = torch.where(weight > 0, weight, ratio.bound / 2).detach()
        elif weight.is_floating_point() and (not inside or inside in name.split(".")):
            noise = torch.rand(weight.shape, generator=draw).to(weight)
            found[name] = (weight + SIZE * (1 + weight.abs()) * (0.5 + noise)).detach()
    return found
