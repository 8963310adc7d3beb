"""How well two systems agree, layer by layer, beside networks that have nothing in common.

    centred cosine, CKA      of the fields after every block
    cosine, JS divergence    of the attention weights in every block

The plain cosine of attention rows is shown because it was published, and beside it what two
unrelated untrained networks reach: it says little by itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.data.batching import Batch
from depthpde.layers.interaction import Attention
from depthpde.layers.stabilizer import Norm
from depthpde.measures.attention import js, seen_pairs
from depthpde.measures.drift import centred_cosine, cosine, linear_cka
from depthpde.models.block import Block
from depthpde.models.pretrained import Pretrained
from depthpde.operators.interaction import attention_weights
from depthpde.papers.measurements.observation import by_layer
from depthpde.shapes import Field, Mask
from depthpde.simulator.simulate import simulate
from depthpde.simulator.transcribe import follow, transcribe
from depthpde.solvers.integrate import BlowUpError
from depthpde.training.evaluate import model_inputs


def agreement(first: Pretrained, second: Pretrained, batch: Batch) -> dict[str, Any]:
    """Compare two models that are shown the same, layer by layer.

    Args:
        first: One model, in evaluation mode.
        second: Another of the same depth and width.
        batch: What both are shown.
    """
    path, sites = follow(first, *model_inputs(first, batch))
    other, _ = follow(second, *model_inputs(second, batch))
    found = compare_fields(path.states, other.states, sites)
    weights = [_weights(model, states.states, sites) for model, states in
               ((first, path), (second, other))]  # fmt: skip
    states = path.states
    seen = seen_pairs(states.shape[2], sites, causal=first.config.causal, device=states.device)
    found["attention cosine"] = _mean_by_layer(
        [_row_cosine(a, b, sites) for a, b in zip(*weights, strict=True)]
    )
    found["attention JS"] = _mean_by_layer([js(a, b, seen) for a, b in zip(*weights, strict=True)])
    return found


def compare_fields(ours: Tensor, theirs: Tensor, sites: Mask | None) -> dict[str, Any]:
    """Compare two trajectories [depths, batch, length, dim] depth by depth."""
    pairs = list(zip(ours, theirs, strict=True))
    measures = {"cosine": cosine, "centred cosine": centred_cosine, "CKA": linear_cka}
    return {
        name: [by_layer([u], lambda u, v=v, m=m: m(u, v, sites))[0] for u, v in pairs]  # type: ignore[misc]
        for name, m in measures.items()
    }


@torch.no_grad()
def continuous_agreement(
    model: Pretrained, batch: Batch, *, method: str = "strang", substeps: int = 4
) -> dict[str, Any] | None:
    """Compare a Transformer with the equation of its own weights at equal depth time.

    Weights are interpolated in depth and the equation is integrated with a finer step; None where
    it blows up.

    Args:
        model: The Transformer.
        batch: What it is shown.
        method: The integrator.
        substeps: Steps of one block.
    """
    path, sites = follow(model, *model_inputs(model, batch))
    equation = transcribe(model, weights="interpolated")
    try:
        smooth = simulate(
            equation,
            path.states[0],
            path.times,
            method=method,
            substeps=substeps,
            valid_mask=sites,
        )
    except BlowUpError:
        return None
    return compare_fields(path.states, smooth.states, sites)


@torch.no_grad()
def _weights(model: Pretrained, states: Tensor, sites: Mask | None) -> list[Tensor]:
    """Form the attention weights of every block from the field that enters it."""
    found = []
    for block, u in zip(model.encoder.blocks, states[:-1], strict=True):
        assert isinstance(block, Block), "every encoder is made of them"
        normed: Field = block.attention_norm(u) if block.norm is Norm.PRE else u
        assert isinstance(block.attention, Attention), "both systems attend"
        found.append(_attend(block.attention, normed, sites))
    return found


def _attend(attention: Attention, u: Field, sites: Mask | None) -> Tensor:
    query, key = (
        each.unflatten(-1, (attention.heads, -1)).transpose(1, 2)
        for each in (attention.query(u), attention.key(u))
    )
    if attention.rotation is not None:
        query, key = attention.rotation(query), attention.rotation(key)
    return attention_weights(query, key, valid_mask=sites, causal=attention.causal)


def _row_cosine(a: Tensor, b: Tensor, sites: Mask | None) -> Tensor:
    rows = F.cosine_similarity(a, b, dim=-1).mean(dim=1)
    return rows if sites is None else rows[sites]


def _mean_by_layer(values: list[Tensor]) -> list[float]:
    return [float(each.nanmean()) for each in values]
