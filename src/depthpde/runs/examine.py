"""examine(model, split) → plain numbers: what a finished model does, for its record.

    transfer   gain |H(ω)| of every linear layer that was placed
    bands      energy in four frequency bands before and after it, on real examples
    depth      the doctor's measures along the depth: drift, rank, entropy, energy, exponents …

So that the weights themselves need not be kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.data.batching import Batch, Batches
from depthpde.data.reader import Split
from depthpde.doctor.measurements import GROUPS, ON_REQUEST
from depthpde.doctor.probe import probe
from depthpde.layers.controls import Blur, DepthwiseConv
from depthpde.layers.diffusion import Diffusion
from depthpde.layers.multiscale import MultiscaleDiffusion
from depthpde.layers.transfer import measure_transfer
from depthpde.operators.energy import band_energies
from depthpde.shapes import Mask
from depthpde.training.evaluate import model_inputs

EXAMPLES = 32
MODES = 33
LINEAR = (Diffusion, MultiscaleDiffusion, DepthwiseConv, Blur)


def examine(model: nn.Module, split: Split, *, examples: int = EXAMPLES) -> dict[str, Any]:
    """Measure a finished model on the first examples of a split.

    Args:
        model: Trained; left as it was.
        split: Where the examples are from.
        examples: How many.
    """
    batch = next(iter(Batches(split, examples).once())).to(_device(model))
    found = {
        "transfer": _transfer(model),
        "bands": _bands(model, batch),
        **_along_depth(model, batch),
    }
    return _rounded(found)


def _placed(model: nn.Module) -> dict[str, nn.Module]:
    """Return the outermost linear layers by name; a member of a mix has no row of its own."""
    found: dict[str, nn.Module] = {}
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{other}.") for other in found)
        if isinstance(module, LINEAR) and not inside:
            found[name] = module
    return found


def _transfer(model: nn.Module) -> dict[str, dict[str, list[float]]]:
    omega = torch.linspace(0.0, math.pi, MODES, device=_device(model))
    return {
        name: {
            "omega": omega.tolist(),
            "gain": measure_transfer(layer, omega).abs().mean(dim=1).tolist(),
        }
        for name, layer in _placed(model).items()
        if getattr(layer, "gate", None) is None and getattr(layer, "grid", None) is None
    }


def _bands(model: nn.Module, batch: Batch) -> dict[str, dict[str, list[float]]]:
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    with _looking(_placed(model), seen), torch.no_grad():
        inputs = _call(model, batch)
    mask = inputs[1] if len(inputs) > 1 else None  # images have none
    return {
        name: {"before": _shares(before, mask), "after": _shares(after, mask)}
        for name, (before, after) in seen.items()
    }


def _shares(u: Tensor, mask: Mask | None) -> list[float]:
    """Return the mean energy of a site in each band, whole sequences cut to their length."""
    if mask is None:
        lengths = [u.shape[1]] * len(u)
    else:
        extra = u.shape[1] - mask.shape[1]  # a site in front
        lengths = (mask.sum(dim=1) + extra).tolist()
    rows = [
        band_energies(row[None, :length])[0] / length
        for row, length in zip(u.double(), lengths, strict=False)
        if length >= 4
    ]
    return torch.stack(rows).mean(dim=0).tolist() if rows else []


@contextmanager
def _looking(
    layers: dict[str, nn.Module], seen: dict[str, tuple[Tensor, Tensor]]
) -> Iterator[None]:
    """Note what goes into and comes out of every layer, the first time it is called."""

    def look(name: str) -> Any:
        def note(module: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> None:
            seen.setdefault(name, (inputs[0].detach(), output.detach()))

        return note

    handles = [layer.register_forward_hook(look(name)) for name, layer in layers.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _call(model: nn.Module, batch: Batch) -> tuple[Tensor, ...]:
    """Call a model in eval mode, and return what it was called with."""
    inputs = model_inputs(model, batch)
    mode = model.training
    model.eval()
    try:
        model(*inputs)
    finally:
        model.train(mode)
    return inputs


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _along_depth(model: nn.Module, batch: Batch) -> dict[str, Any]:
    """Return every measure with one number a depth; heads are averaged."""
    inputs = model_inputs(model, batch)
    trajectory = probe(
        model,
        inputs,
        labels=batch.labels,
        groups=(*GROUPS, *ON_REQUEST),
        baseline=False,
        causality=False,
    )
    depth = {name: [_one(value) for value in each.values] for name, each in trajectory.items()}
    return {
        "depth": {name: values for name, values in depth.items() if not _by_layer(name)},
        "layers": {
            name: dict(zip(trajectory[name].labels, values, strict=True))
            for name, values in depth.items()
            if _by_layer(name)
        },
        "missing": trajectory.missing,
    }


def _by_layer(name: str) -> bool:
    return name in ("energy.cfl_margin", "coupling.moved", "coupling.bound")


def _one(value: float | list[float]) -> float | None:
    numbers = value if isinstance(value, list) else [value]
    finite = [each for each in numbers if math.isfinite(each)]
    return sum(finite) / len(finite) if finite else None


def _rounded(value: Any) -> Any:
    """Keep the digits that 32 examples can resolve."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
