"""First weights: one random stream for each parameter's name.

Whatever is placed in a model, a parameter that two models share starts from the same numbers, so
that a difference between them is a difference of what is placed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from depthpde.errors import shown
from depthpde.models.config import ModelConfig
from depthpde.seeds import generator as stream

_SCALED = ("value", "out", "enter")
"""The weights that DeepNorm starts smaller: those an increment is proportional to."""


def initialise(
    model: nn.Module, config: ModelConfig, generator: torch.Generator | None = None
) -> None:
    """Give every parameter its first value.

        W ~ N(0, gain² · 2 / (fan_in + fan_out)),    biases 0,    tables ~ N(0, 1 / dim)

    The matrix of each gate of an LSTM is such a W; its forget gates start open, with a bias of 1.
    Layers that are placed start by themselves, without chance. Numbers are drawn on the CPU in
    float32, so they do not depend on the device.

    Args:
        model: The model, built.
        config: Its config.
        generator: Source of one seed, from which every stream is derived; None takes torch's own.
    """
    if generator is not None and not isinstance(generator, torch.Generator):
        raise ValueError(
            f"`generator` must be a torch.Generator, got {shown(generator)}; use dp.generator(0)"
        )
    seed = int(torch.randint(2**62, (), generator=generator, device="cpu"))
    gain = config.stability.branch_gain(config.blocks)
    for name, module in model.named_modules():
        if ".placed." in f".{name}.":
            continue
        if isinstance(module, nn.Linear):
            scaled = gain if name.rsplit(".", 1)[-1] in _SCALED else 1.0
            std = scaled * (2.0 / (module.in_features + module.out_features)) ** 0.5
            _draw(module.weight, std, seed, f"{name}.weight")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Conv2d):
            scaled = gain if name.rsplit(".", 1)[-1] in _SCALED else 1.0
            fans = (module.in_channels + module.out_channels) * math.prod(module.kernel_size)
            _draw(module.weight, scaled * (2.0 / fans) ** 0.5, seed, f"{name}.weight")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LSTM):
            _initialise_lstm(module, seed, name)
        elif isinstance(module, nn.Embedding):
            _draw(module.weight, config.dim**-0.5, seed, f"{name}.weight")
    for name, parameter in model.named_parameters():
        if name.rsplit(".", 1)[-1] in ("sites", "front"):
            _draw(parameter, config.dim**-0.5, seed, name)


def _initialise_lstm(lstm: nn.LSTM, seed: int, name: str) -> None:
    for each, parameter in lstm.named_parameters():
        if each.startswith("weight"):
            std = (2.0 / (parameter.shape[1] + lstm.hidden_size)) ** 0.5
            _draw(parameter, std, seed, f"{name}.{each}")
        else:  # of the input, forget, cell and output gates, one after the other
            nn.init.zeros_(parameter)
            if each.startswith("bias_ih"):
                nn.init.ones_(parameter.data.chunk(4)[1])


def _draw(parameter: Tensor, std: float, seed: int, name: str) -> None:
    numbers = torch.randn(parameter.shape, generator=stream(seed, "init", name), device="cpu")
    with torch.no_grad():
        parameter.copy_(std * numbers)
