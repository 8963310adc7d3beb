"""The loss of a pass, and its gradients, computed without touching ``.grad``.

    ‖∂loss/∂u_l‖ on the stream at every depth,    ‖∂loss/∂w‖ of each block

In a pass of its own, after the stream was measured: the graph of a pass and what is kept of the
stream are never in memory together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.doctor.activations import listening
from depthpde.doctor.large import MANY, gradient_rows, is_large, of_rows
from depthpde.doctor.measurements import Measurements
from depthpde.doctor.model_map import block_of
from depthpde.doctor.not_measured import NotMeasured
from depthpde.insertion.calling import call_model
from depthpde.insertion.layout import FieldLayout
from depthpde.measures import gradient as gradient_measures


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


def add_gradients(
    measurements: Measurements,
    args: tuple[Any, ...],
    named: dict[str, Any],
    labels: Tensor | None,
    loss: Callable[..., Tensor] | None,
) -> tuple[float, int | None]:
    """Run the model once more and measure its gradients.

    Args:
        measurements: Of the pass before; takes the series.
        args: Positional arguments of the model.
        named: Its named arguments.
        labels: The right answers.
        loss: Takes the output (and the labels, if given).

    Returns:
        The loss, and of how many rows both are; None for all of them.
    """
    body, activations = measurements.model_map, measurements.activations
    mask, rows = activations.valid_mask, None
    batch, length = activations.stream[0].shape[:2]
    # a loss that holds its answers itself wants them all
    if body.layout() is not FieldLayout.LBC and (loss is None or labels is not None):
        rows = gradient_rows(body.model, batch, length, mask)
    if rows is not None:
        take = of_rows(rows, batch)
        args, labels, mask = tuple(map(take, args)), take(labels), take(mask)
        named = {name: take(each) for name, each in named.items()}
    few = None if rows is None else len(rows)
    nodes: dict[int, Tensor] = {}
    weights: dict[str, Tensor] = {
        name: each for name, each in body.model.named_parameters() if each.requires_grad
    }
    if is_large(body.model):
        weights = {}  # one after the other they still leave holes as large as the model
        measurements.missing["gradient.weights"] = f"more than {MANY // 10**6} million weights"
    with (
        torch.enable_grad(),
        ExitStack() as undo,
        listening(body, partial(_keep_node, nodes, undo)),
    ):
        value = training_loss(call_model(body.model, args, named), labels, loss)
        found = gradients_of(value, weights, nodes)
    if isinstance(found, NotMeasured):
        measurements.missing["gradient"] = found.reason
        return float(value.detach()), few
    stream, sizes = found
    fields = [body.layout().field(stream[depth]) for depth in sorted(stream)]
    norms = gradient_measures.stream_norms(fields, mask)
    amplified = gradient_measures.amplification(fields, mask)
    groups = gradient_measures.norms_by_group(sizes, block_of(body))
    others, measurements.series = measurements.series, {}
    depths = measurements.depths
    measurements.add("gradient.stream", "‖∂loss/∂u‖", depths, norms.tolist())
    measurements.add("gradient.amplification", "‖g_l‖ / ‖g_L‖", depths, amplified.tolist())
    if groups:
        words = "‖∂loss/∂w‖ of each part"
        measurements.add("gradient.weights", words, list(groups), list(groups.values()))
    measurements.series |= others
    return float(value.detach()), few


def _keep_node(nodes: dict[int, Tensor], undo: ExitStack, depth: int, u: Tensor) -> None:
    """Keep a tensor of the stream itself, so that its gradient can be computed."""
    if depth in nodes:
        return
    if not u.requires_grad and u.is_leaf:  # nothing before it learns
        u.requires_grad_(True)
        undo.callback(u.requires_grad_, False)
    nodes[depth] = u


def gradients_of(
    loss: Tensor, weights: dict[str, Tensor], nodes: dict[int, Tensor]
) -> tuple[dict[int, Tensor], dict[str, Tensor | None]] | NotMeasured:
    """Return the gradients on the stream and ‖∂loss/∂w‖ of weights, or why there are none.

    ``.grad`` of no weight is touched, and no gradient of a weight outlives its norm: together they
    would be a second model.

    Args:
        loss: Of a pass.
        weights: Those whose gradients are wanted, by name.
        nodes: The stream's own tensors by depth.
    """
    if not loss.requires_grad:
        return NotMeasured("the loss does not depend on anything that learns")
    wanted = {depth: node for depth, node in nodes.items() if node.requires_grad}
    if len(wanted) < len(nodes):
        return NotMeasured("the stream does not let gradients through")
    norms: dict[str, Tensor | None] = dict.fromkeys(weights)
    with ExitStack() as stack:
        for name, weight in weights.items():
            hook = weight.register_hook(partial(_keep_norm, norms, name))  # type: ignore[no-untyped-call]
            stack.callback(hook.remove)
        found = torch.autograd.grad(loss, (*wanted.values(), *weights.values()), allow_unused=True)
    stream = {
        depth: torch.zeros_like(node) if gradient is None else gradient
        for (depth, node), gradient in zip(wanted.items(), found, strict=False)
    }
    return stream, norms


def _keep_norm(norms: dict[str, Tensor | None], name: str, gradient: Tensor) -> Tensor:
    """Note a gradient's norm, and hand on zeros of its shape that share one number."""
    norms[name] = gradient_measures.precise_norm(gradient)
    return gradient if gradient.is_sparse else gradient.new_zeros(()).expand_as(gradient)


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
