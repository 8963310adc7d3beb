"""From a Transformer to its equation: the same attention and feed-forward, as terms of a PDE.

    u_{l+1} = block_l(u_l)        →        u_t = A(u, t) + R(u, t),    u(l) ≈ u_l

With Lie splitting and dt = 1 the two are the same; at any other step or integrator the difference
is what the Transformer's own discretization leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.errors import check_one_of
from depthpde.layers.pooling import Pooling
from depthpde.models.pretrained import Pretrained
from depthpde.shapes import Field, Mask
from depthpde.simulator.config import Weights
from depthpde.simulator.depth import Interpolated
from depthpde.simulator.equation import Equation, Maps
from depthpde.solvers.trajectory import Trajectory


def transcribe(
    model: Pretrained,
    *,
    weights: Weights | str = Weights.PER_LAYER,
    diffusion: float = 0.0,
) -> Equation:
    """Write a Transformer as an equation. The maps are the model's own modules, not copies.

        u_t = α L u + A_t[S u] + R_t(S u)

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> equation = dp.transcribe(model, weights="interpolated")

    Args:
        model: One of our models, with nothing placed in it.
        weights: Those of block l for l ≤ t < l + 1, or interpolated in between.
        diffusion: α, a term that the Transformer lacks.
    """
    config = model.config
    if config.positions:
        raise ValueError(
            "`model` must have nothing placed in it, got "
            f"{', '.join(each.position.value for each in config.placements)}; build it without "
            "positions, and give `diffusion`"
        )
    if config.interaction is not None:
        raise ValueError(
            f"`model` must attend, got interaction {str(config.interaction)!r}; its equation is "
            "another one"
        )
    if model.training and (config.dropout or config.attention_dropout):
        raise ValueError(
            "`model` must be in evaluation mode where it has dropout; use model.eval()"
        )
    kind = check_one_of("weights", weights, Weights)
    blocks = list(model.encoder.blocks)

    def along(name: str) -> Maps:
        modules = [block.get_submodule(name) for block in blocks]
        return Interpolated(modules) if kind is Weights.INTERPOLATED else modules

    return Equation(
        diffusion=diffusion,
        interaction=along("attention"),
        reaction=along("reaction"),
        interaction_norm=along("attention_norm"),
        reaction_norm=along("reaction_norm"),
        stabilizer=config.stability,
        causal=config.causal,
        prefix=config.prefix,
    )


@torch.no_grad()
def follow(
    model: Pretrained, inputs: Tensor, valid_mask: Mask | None = None
) -> tuple[Trajectory, Mask | None]:
    """Record the field before the first block and after each, as the model computes it.

        u(0) = embed(inputs),    u(l) after block l,    before the last norm

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, blocks=3, vocabulary=9, length=12, classes=3))
    >>> path, mask = dp.follow(model, torch.randint(9, (2, 12)))
    >>> len(path.times)
    4

    Args:
        model: One of our models.
        inputs: What the model takes in.
        valid_mask: True = real token.

    Returns:
        The trajectory at times 0, 1, …, blocks, and the mask of its sites: with CLS pooling there
        is one site more in front.
    """
    states: list[Field] = []
    blocks = list(model.encoder.blocks)
    hooks = [blocks[0].register_forward_pre_hook(_keep_input(states))]
    hooks += [block.register_forward_hook(_keep_output(states)) for block in blocks]
    try:
        model.encoder(inputs, valid_mask)
    finally:
        for hook in hooks:
            hook.remove()
    if valid_mask is not None and model.config.pooling is Pooling.CLS:
        valid_mask = nn.functional.pad(valid_mask, (1, 0), value=True)
    times = torch.arange(len(blocks) + 1, dtype=torch.float64)
    path = Trajectory(
        times=times,
        states=torch.stack(states),
        method="blocks",
        terms=("interaction", "reaction"),
    )
    return path, valid_mask


def _keep_input(states: list[Field]) -> Callable[[nn.Module, Any], None]:
    def keep(module: nn.Module, inputs: Any) -> None:
        states.append(inputs[0].detach())

    return keep


def _keep_output(states: list[Field]) -> Callable[[nn.Module, Any, Tensor], None]:
    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        states.append(output.detach())

    return keep
