"""Proportions: what the weights of one model say when they are compared with one another.

    norms moved as one     |median − start| / spread of a norm's gain (start: 1 or 0) or shift (0)
    a head without past    its bias is exactly zero while the biases of the blocks have moved
    a head of other width  more or fewer outputs than the model's own settings declare
    repeated positions     neighbouring rows of a table of positions that are equal

Learning moves the entries of a gain apart as it moves their mean: a mean far from its start with
hardly any spread was not learned. A gain whose entries are all equal tells nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from depthpde.doctor.checks.components import POSITION_NAMES
from depthpde.doctor.model_map import ModelMap

LEAST_SHIFT = 0.1
"""A mean that is nearer to its start counts as being there."""
WIDTHS = ("num_labels", "num_classes", "vocab_size", "classes", "vocabulary", "num_tokens")
"""Settings that declare how many outputs a head has."""


def proportion_facts(body: ModelMap, width: int | None) -> dict[str, Any]:
    """Return what the weights show when they are compared with one another.

    Args:
        body: The model.
        width: How many logits it gives; None where it gives none.
    """
    return {
        "norm_shift": _norms(body),
        "head": _head(body, width),
        "repeated_positions": _repeated(body),
    }


def _norms(body: ModelMap) -> dict[str, Any] | None:
    """Find the norm of a block whose gain or shift was moved as one."""
    found = []
    names = {id(each): name for name, each in body.model.named_modules()}
    for block in body.blocks:
        for module in block.parts.modules():
            if "norm" not in type(module).__name__.lower():
                continue
            for kind, own, values in _gain_and_shift(module):
                from_one = kind == "gain" and not _adds_one(module, own)
                value = _moved_as_one(values, (0.0, 1.0) if from_one else (0.0,))
                if value is not None:
                    found.append((value, kind, names[id(module)], float(values.median())))
    if not found:
        return None
    value, kind, name, middle = max(found, key=lambda each: each[0])
    return {"value": value, "kind": kind, "name": name, "middle": middle}


def _adds_one(module: nn.Module, name: str) -> bool:
    """Tell whether a norm multiplies with 1 + its weight, so that the weight begins at zero."""
    weight = module.get_parameter(name)
    row = torch.linspace(-1, 1, weight.numel(), dtype=weight.dtype, device=weight.device)
    rows = torch.stack((row, row.roll(1)))
    try:
        with torch.no_grad():
            out = functional_call(module, {name: torch.zeros_like(weight)}, (rows,))
    except Exception:  # a norm that needs more than a field: both starts are allowed
        return False
    return isinstance(out, Tensor) and not torch.equal(out[0], out[1])


def _gain_and_shift(module: nn.Module) -> list[tuple[str, str, Tensor]]:
    named = {"gain": ("weight", "gamma", "scale", "g"), "shift": ("bias", "beta")}
    found = []
    for kind, names in named.items():
        for name in names:
            each = getattr(module, name, None)
            if isinstance(each, nn.Parameter) and each.ndim == 1 and each.numel() > 3:
                found.append((kind, name, each.detach().float()))
                break
    return found


def _moved_as_one(values: Tensor, starts: tuple[float, ...]) -> float | None:
    """Measure how far the median is from where it began, against the spread; None if none."""
    spread = float(values.std())
    shift = min(abs(float(values.median()) - each) for each in starts)
    if spread == 0.0 or not torch.isfinite(values).all():
        return None
    return shift / spread if shift > LEAST_SHIFT else 0.0


def _head(body: ModelMap, width: int | None) -> dict[str, Any] | None:
    """Compare the outputs with the settings, and the bias of what makes them with the blocks'."""
    if width is None:
        return None
    inside = {id(each) for block in body.blocks for each in block.parts.modules()}
    heads = [
        (name, each)
        for name, each in body.model.named_modules()
        if isinstance(each, nn.Linear) and each.out_features == width and id(each) not in inside
    ]
    if not heads:
        return None
    name, head = heads[-1]
    biases = [
        each.detach()
        for block in body.blocks
        for path, each in block.parts.named_parameters()
        if path.endswith("bias") and each.ndim == 1
    ]
    moved = [bool((each != 0).any()) for each in biases]
    fresh = head.bias is not None and not bool((head.bias != 0).any())
    return {
        "name": name,
        "width": width,
        "declared": _declared(body.model),
        "untrained": bool(fresh and moved and sum(moved) > len(moved) / 2),
    }


def _declared(model: nn.Module) -> list[int]:
    """List the widths of output that a model or its settings declare."""
    holders = [model, getattr(model, "config", None), getattr(model, "num_tokens", None)]
    found = [getattr(each, name, None) for each in holders for name in WIDTHS]
    return sorted({each for each in found if isinstance(each, int) and each > 0})


def _repeated(body: ModelMap) -> dict[str, Any] | None:
    """Find a table of positions with rows that are equal to the one before."""
    for name, weight in body.model.named_parameters():
        table = weight.detach().squeeze(0) if weight.ndim == 3 else weight.detach()
        if not any(each in name.lower() for each in POSITION_NAMES) or table.ndim != 2:
            continue
        if len(table) < 3 or not bool((table != table[:1]).any()):
            continue  # one row alone, or a table of zeros: another condition's
        same = int((table[1:] == table[:-1]).all(dim=1).sum())
        if same:
            return {"name": name, "count": same, "rows": len(table)}
    return None
