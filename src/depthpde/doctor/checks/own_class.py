"""Own class: a model against a new one of its own class and settings, with the same weights.

    new(x; w) against model(x; w)        one difference is one too many

A model that computes something else than its class was changed after it was made: a method that
was replaced, a hook, a setting of one module. What is saved is then not what runs. No reference is
needed; the class must be one that can be made from its settings (`model.config`).
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from depthpde.doctor.checks.components import component_of_weight
from depthpde.doctor.checks.departure import code_departure, departure
from depthpde.doctor.model_map import ModelMap
from depthpde.doctor.not_measured import NotMeasured
from depthpde.insertion.hooks.container import PREFIX

MOST_PARAMETERS = 2 * 10**7
"""Size up to which a model is made anew."""
SEED = 7919
"""Of a new model: no round number, so that it is another draw than the model itself."""
LIBRARIES = ("transformers", "timm", "x_transformers")
"""Whose classes are a design that many use: what a new model of one shows is meant."""


def is_of_a_library(model: nn.Module) -> bool:
    """Tell whether a model's class is a published one, not one of the caller's own.

    Args:
        model: The model.
    """
    return type(model).__module__.split(".")[0] in LIBRARIES


def made_anew(model: nn.Module) -> nn.Module | None:
    """Make a model of the same class and settings; None if that cannot be done, or is dear.

    Args:
        model: The model.
    """
    config = getattr(model, "config", None)
    weights = list(model.parameters())
    kinds = {(each.dtype, each.device) for each in weights}
    if config is None or sum(each.numel() for each in weights) > MOST_PARAMETERS:
        return None
    if len(kinds) != 1:
        return None  # weights of several formats are not made by a class alone
    make: Any = type(model)
    (dtype, device) = kinds.pop()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            made: nn.Module = make(copy.deepcopy(config)).to(device, dtype).eval()
    except Exception:  # a class that needs more than its settings says nothing
        return None
    return made


def class_departure(
    body: ModelMap, fresh: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any] | NotMeasured:
    """Return where a model departs from its class: size, module, component and a sentence.

    Args:
        body: The model.
        fresh: A new model of its class and settings; it takes the model's weights.
        args: What both are called with.
        named: And what by name.
    """
    model = body.model
    if getattr(model, PREFIX, None) is not None:
        return NotMeasured("layers were inserted into the model")
    ours, theirs = (dict(each.named_parameters()) for each in (model, fresh))
    if set(ours) - set(theirs):
        return NotMeasured("the model has weights that its class does not have")
    for name, weight in theirs.items():
        path = name.rpartition(".")[0]
        if name not in ours:
            text = f"{name} is a parameter of the class, not of this model"
            return departure(1.0, path, component_of_weight(body, name), text)
        if ours[name].shape != weight.shape:
            shapes = f"{list(ours[name].shape)}, its settings make {list(weight.shape)}"
            text = f"{name} has the shape {shapes}"
            return departure(1.0, path, component_of_weight(body, name), text)
    fresh.load_state_dict(model.state_dict(), strict=False)
    return code_departure(body, fresh, args, named)
