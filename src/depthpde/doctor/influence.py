"""Influence: what the diffusion layers of a model change, against their bound and downstream.

    at the layer     ‖Du − u‖ ≤ 2 n r √(2E(u))
    at the end       ‖u_L − u_L without them‖ / ‖u_L‖

Without means: a hook gives back what each layer was given. The model is not changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.doctor.activations import watching
from depthpde.doctor.measurements import Measurements
from depthpde.measures import coupling
from depthpde.measures.tokens import real_tokens


def add_influence(
    measurements: Measurements, layers: dict[str, nn.Module], run: Callable[[], Any]
) -> dict[str, Any]:
    """Measure what every diffusion layer moved, and what the end would be without them all.

    Args:
        measurements: Of the pass with the layers.
        layers: The diffusion layers by name.
        run: Calls the model again.

    Returns:
        Facts: the relative change at the end, and by what the network multiplied the moves.
    """
    moved, bounds = {}, {}
    for name, (before, after, mask) in measurements.activations.moved.items():
        if before.ndim != 3 or before.shape != after.shape:
            continue
        change = coupling.insertion_change(before, after, mask)
        bound = coupling.insertion_bound(layers[name], before, mask)
        moved[name] = float(torch.linalg.vector_norm(change))
        bounds[name] = math.nan if bound is None else float(torch.linalg.vector_norm(bound))
    if not moved:
        measurements.missing["coupling.moved"] = "no diffusion layer was called with a field"
        return {}
    labels = list(moved)
    measurements.add("coupling.moved", "‖Du − u‖ at each layer", labels, list(moved.values()))
    measurements.add("coupling.bound", "2 n r √(2E) at each layer", labels, list(bounds.values()))
    without = _end_without(measurements, layers, run)
    mask = measurements.activations.valid_mask
    end = real_tokens(measurements.activations.fields()[-1], mask)
    change = torch.linalg.vector_norm(end - real_tokens(without, mask))
    total = math.sqrt(sum(each**2 for each in moved.values()))
    return {
        "insertion_change": float(change / torch.linalg.vector_norm(end)),
        "insertion_amplification": float(change) / total if total > 0 else math.nan,
    }


def _end_without(
    measurements: Measurements, layers: dict[str, nn.Module], run: Callable[[], Any]
) -> Tensor:
    handles = [
        layer.register_forward_hook(lambda layer, args, output: args[0])
        for layer in layers.values()
    ]
    try:
        with watching(measurements.model_map, inside=False) as activations:
            run()
    finally:
        for handle in handles:
            handle.remove()
    return activations.fields()[-1]
