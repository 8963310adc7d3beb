"""A random network of the same shapes: what a measure would be if nothing had been learned.

    every matrix W  →  normal numbers of W's own mean and spread;  vectors are kept

The model itself is called with other weights in place of its own (``torch.func``): no copy of it
is made and nothing of it is changed. Many measures are high or low for any network at all, so a
finding means little without this number beside it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from depthpde import seeds
from depthpde.doctor.activations import watching
from depthpde.doctor.measurements import Measurements

MOST_PARAMETERS = 5 * 10**7
"""Size up to which a second set of weights is drawn by default."""
GROUPS = ("drift", "rank", "attention")
"""Measures for which a random network is informative."""


def random_weights(model: nn.Module, seed: int = 0) -> dict[str, Tensor]:
    """Draw a matrix of the same mean and spread for each matrix of a model."""
    drawn: dict[str, Tensor] = {}
    for name, weight in model.named_parameters():
        if weight.ndim < 2 or not weight.is_floating_point():
            continue
        source = seeds.generator(seed, "baseline", name)
        noise = torch.randn(weight.shape, generator=source, device=source.device)
        wide = weight.detach().float()
        mean, spread = wide.mean(), wide.std(correction=0)
        value = (mean + spread * noise.to(weight.device)).to(weight.dtype)
        drawn[name] = nn.Parameter(value, requires_grad=False)
    return drawn


def add_baseline(
    measurements: Measurements,
    args: tuple[Any, ...],
    named: dict[str, Any],
    groups: Collection[str],
) -> None:
    """Run a random network of the same shapes, and put its numbers beside the model's."""
    model = measurements.model_map.model
    size = sum(each.numel() for each in model.parameters())
    if size > MOST_PARAMETERS:
        measurements.missing["random baseline"] = (
            f"{size / 1e6:,.0f} million weights would be drawn again; at most "
            f"{MOST_PARAMETERS // 10**6} million are"
        )
        return
    with watching(measurements.model_map) as activations:
        functional_call(model, random_weights(model), args, named)
    other = Measurements(measurements.model_map, activations).take(
        [each for each in groups if each in GROUPS]
    )
    for name, series in other.series.items():
        if name in measurements.series:
            measurements.series[name] = replace(measurements.series[name], baseline=series.values)
