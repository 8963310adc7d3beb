"""Inspection: what the weights show by themselves, without any pass.

    void part of a matrix     zero rows, zero columns, entries that are all equal
    weights that cannot learn while others of their block do, or that are not registered

Whole embeddings or blocks that are frozen are somebody's decision and are not named.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from depthpde.doctor.checks.components import component_of_weight
from depthpde.doctor.model_map import ModelMap

ADAPTERS = ("lora", "adapter", "prompt", "depthpde", "placed")
"""Parts of names of weights that start at zero, or learn alone, by design."""


def inspect_weights(body: ModelMap) -> list[dict[str, Any]]:
    """List the matrices with a void part: name, module, component, share, and what it is."""
    found: list[dict[str, Any]] = []
    padding = {  # a head that is tied to an embedding shares its row of padding
        each.weight.data_ptr(): each.padding_idx
        for each in body.model.modules()
        if isinstance(each, nn.Embedding) and each.padding_idx is not None
    }
    for path, module in body.model.named_modules():
        if any(each in path.lower() for each in ADAPTERS):
            continue
        for name, weight in matrices(module):
            emptiness = _void(weight, padding.get(weight.data_ptr()))
            if emptiness is not None:
                share, what = emptiness
                found.append(
                    {
                        "name": f"{path}.{name}".lstrip("."),
                        "module": path,
                        "component": component_of_weight(body, f"{path}.{name}".lstrip(".")),
                        "share": share,
                        "what": what,
                    }
                )
    return found


def matrices(module: nn.Module) -> list[tuple[str, Tensor]]:
    """List the matrices a module holds itself, registered or not."""
    own: dict[str, Tensor] = dict(module.named_parameters(recurse=False))
    own |= {name: each for name, each in vars(module).items() if isinstance(each, Tensor)}
    return [
        (name, each.detach())
        for name, each in own.items()
        if each.ndim == 2 and min(each.shape) > 1 and each.is_floating_point()
    ]


def _void(weight: Tensor, padding: int | None) -> tuple[float, str] | None:
    """Measure the void part of a matrix; None where there is none."""
    if bool((weight[0] == weight[0, 0]).all()) and bool((weight == weight[0, 0]).all()):
        value = float(weight[0, 0])
        return 1.0, f"every entry is {value:g}"
    # without a copy of the weight, as its absolute values would be
    rows, columns = ((weight.amax(axis) == 0) & (weight.amin(axis) == 0) for axis in (1, 0))
    if isinstance(padding, int) and 0 <= padding < len(rows):
        rows[padding] = False
    for what, void in (("rows", rows), ("columns", columns)):
        count = int(void.sum())
        if count:
            return count / len(void), f"{count} of {len(void)} {what} are zero"
    return None


def inspect_learning(body: ModelMap) -> dict[str, Any]:
    """Find weights that cannot learn beside siblings that can, or that no optimizer will find."""
    names = {id(each): name for name, each in body.model.named_parameters()}
    loose = _loose(body)
    if loose:
        why = "a tensor that is no parameter: no optimizer finds it"
        return _found(body, loose, 1.0, why)
    if any(any(word in name.lower() for word in ADAPTERS) for name in names.values()):
        return _found(body, [], 0.0, "")
    held, mixed = [], 0
    for block in body.blocks:
        own = [each for each in block.parts.parameters() if each.ndim > 1]
        still = [names[id(each)] for each in own if not each.requires_grad and id(each) in names]
        if 0 < len(still) < len(own):
            held += still
            mixed += 1
    why = "they cannot learn (requires_grad=False) while others of their block do"
    return _found(body, held, mixed / max(1, len(body.blocks)), why)


def _loose(body: ModelMap) -> list[str]:
    """Name matrices that lie on a module as plain tensors."""
    return [
        f"{path}.{name}"
        for path, module in body.model.named_modules()
        for name, each in vars(module).items()
        if isinstance(each, Tensor)
        and isinstance(module, nn.Linear | nn.Embedding)
        and each.ndim == 2
        and torch.is_floating_point(each)
    ]


def _found(body: ModelMap, names: list[str], value: float, why: str) -> dict[str, Any]:
    component = component_of_weight(body, names[0]) if names else ""
    return {"names": names, "value": value, "why": why, "component": component}
