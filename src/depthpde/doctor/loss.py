"""The loss of a pass, and its gradients, computed without touching ``.grad``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from depthpde.doctor.not_measured import NotMeasured


def training_loss(output: Any, labels: Tensor | None, loss: Callable[..., Tensor] | None) -> Tensor:
    """Give the loss of an output: by the caller's function, the model's own, or cross-entropy.

    Args:
        output: What the model gave.
        labels: [batch] for one class a sequence, [batch, length] for one token a site (−100 is
            left out).
        loss: Takes the output (and the labels, if given).
    """
    if loss is not None:
        value = loss(output) if labels is None else loss(output, labels)
        if not isinstance(value, Tensor) or value.numel() != 1:
            got = str(list(value.shape)) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"`loss` must give one number as a tensor, got {got}")
        return value
    assert labels is not None, "checked by the caller"
    own = getattr(output, "loss", None)
    if isinstance(own, Tensor):
        return own
    logits = logits_of(output)
    if logits is None or logits.shape[:-1] != labels.shape:
        given = "no tensor" if logits is None else f"logits {list(logits.shape)}"
        raise ValueError(
            f"`labels` must fit the model's output, got labels {list(labels.shape)} and {given}; "
            "pass loss= with a function of the output and the labels"
        )
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


def gradients_of(
    loss: Tensor, model: nn.Module, nodes: dict[int, Tensor]
) -> tuple[dict[int, Tensor], dict[str, Tensor | None]] | NotMeasured:
    """Return the gradients on the stream and of the weights, or why there are none.

    ``.grad`` of no weight is touched.
    """
    if not loss.requires_grad:
        return NotMeasured("the loss does not depend on anything that learns")
    weights = {name: each for name, each in model.named_parameters() if each.requires_grad}
    wanted = {depth: node for depth, node in nodes.items() if node.requires_grad}
    if len(wanted) < len(nodes):
        return NotMeasured("the stream does not let gradients through")
    found = torch.autograd.grad(loss, (*wanted.values(), *weights.values()), allow_unused=True)
    stream = {
        depth: torch.zeros_like(node) if gradient is None else gradient
        for (depth, node), gradient in zip(wanted.items(), found, strict=False)
    }
    return stream, dict(zip(weights, found[len(wanted) :], strict=True))


def logits_of(output: Any) -> Tensor | None:
    """Find the logits in what a model gave; None if there are none."""
    named = getattr(output, "logits", None)
    if isinstance(named, Tensor):
        return named
    if isinstance(output, Mapping):
        output = list(output.values())
    while isinstance(output, tuple | list) and output:
        output = output[0]
    return output if isinstance(output, Tensor) and output.ndim >= 2 else None
