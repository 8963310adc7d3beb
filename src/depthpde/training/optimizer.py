"""AdamW with a rate of its own for the diffusion ratios."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from depthpde.layers.ratio import BoundedRatio
from depthpde.training.config import TrainingConfig
from depthpde.training.schedule import Schedule, rate

RATIO = "theta"
"""The last word in the name of every parameter that is a free form of a ratio."""


def build_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Build AdamW over three groups: matrices (decayed), vectors, and ratios (faster).

    Each group carries its `gain`, and `set_rate` multiplies by it.
    """
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    ratios = [each for name, each in named if _is_ratio(name)]
    others = [each for name, each in named if not _is_ratio(name)]
    groups = [
        {"params": [each for each in others if each.ndim > 1], "gain": 1.0},
        {"params": [each for each in others if each.ndim <= 1], "gain": 1.0, "weight_decay": 0.0},
        {"params": ratios, "gain": config.ratio_gain, "weight_decay": 0.0},
    ]
    if not named:
        raise ValueError("`model` must have parameters that require gradients, got none")
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        fused=True,
    )


def set_rate(optimizer: torch.optim.Optimizer, config: TrainingConfig, update: int) -> float:
    """Set the learning rates for an update, counted from 0, and return that of the model."""
    value = config.learning_rate * rate(
        Schedule(config.schedule),
        update,
        updates=config.updates,
        warmup=config.warmup,
        floor=config.floor,
    )
    for group in optimizer.param_groups:
        group["lr"] = value * group["gain"]
    return value


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's memory by parameter name: ``name/exp_avg`` and so on."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    """Give the optimizer the memory that `optimizer_tensors` returned."""
    parameters = dict(model.named_parameters())
    for full, value in tensors.items():
        name, key = full.rsplit("/", 1)
        parameter = parameters[name]
        optimizer.state[parameter][key] = value.to(parameter.device, copy=True)


def learned_ratios(model: nn.Module) -> dict[str, float]:
    """Return the mean of every learned diffusion ratio, by the module's name."""
    with torch.no_grad():
        return {
            name: float(module().mean())
            for name, module in model.named_modules()
            if isinstance(module, BoundedRatio)
        }


def _is_ratio(name: str) -> bool:
    return name.rsplit(".", 1)[-1] == RATIO
