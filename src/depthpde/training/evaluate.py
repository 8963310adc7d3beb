"""Evaluate a model on a split: loss, accuracy, and the prediction for every example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthpde.data.batching import Batch, Batches
from depthpde.data.reader import Split
from depthpde.data.task import TaskKind
from depthpde.layers.embedding import InputKind
from depthpde.seeds import generator

IGNORED = -100
"""The label of a site that is not judged, such as padding."""

BatchTransform = Callable[[Batch, torch.Generator], Batch]
"""What is made of a batch before the model sees it, such as hidden tokens to predict."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """What a model reached on a split."""

    accuracy: float
    """Share right, in percent; of the tokens for a language task."""
    loss: float
    """Mean cross-entropy in nats, without smoothing."""
    targets: int
    """Labels judged: examples, or tokens where every site has a label."""
    predictions: Tensor | None
    """[examples] predicted class, in the split's order; None where sites are judged."""


def predict(model: nn.Module, batch: Batch) -> Tensor:
    """Return the logits of a batch, [batch, classes] or [batch, length, vocabulary].

    A mask without padding is left out where a look at it does not wait for a device: attention,
    diffusion and pooling would read it at every site, for nothing.
    """
    return model(*(_unless_full(each) for each in model_inputs(model, batch)))


def _unless_full(given: Tensor) -> Tensor | None:
    is_mask = given.dtype == torch.bool and given.device.type == "cpu"
    return None if is_mask and bool(given.all()) else given


def model_inputs(model: nn.Module, batch: Batch) -> tuple[Tensor, ...]:
    """Return what a model is called with for a batch, in the order of its arguments.

    images [batch, channels, height, width] in [0, 1] where patches come in, else tokens and
    mask of every document (windows of a text have none)
    """
    config: Any = getattr(model, "config", None)
    if getattr(config, "input", None) == InputKind.PATCH:
        rows, columns = (config.patch * side for side in config.grid)
        dtype = next(model.parameters()).dtype
        if batch.tokens.is_floating_point():  # [batch, pixels, channels], standardised already
            planes = batch.tokens.to(dtype).transpose(1, 2)
        else:
            planes = batch.tokens.to(dtype) / 255
        return (planes.reshape(-1, config.channels, rows, columns),)
    if batch.valid_mask is None:
        return (batch.tokens,)
    if batch.second_tokens is None or batch.second_mask is None:
        return batch.tokens, batch.valid_mask
    return batch.tokens, batch.valid_mask, batch.second_tokens, batch.second_mask


def cross_entropy(logits: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """Return the mean cross-entropy over all labels, in nats.

    −Σ_c q_c log softmax(logits)_c,     q = (1 − s) · one-hot + s / classes

    Ignored labels do not count; without any other the loss is 0.
    """
    if labels.ndim == 1:
        return F.cross_entropy(logits, labels, label_smoothing=smoothing)
    summed = F.cross_entropy(
        logits.flatten(0, -2),
        labels.flatten(),
        label_smoothing=smoothing,
        ignore_index=IGNORED,
        reduction="sum",
    )
    return summed / max(1, count_targets(labels))


def count_targets(labels: Tensor) -> int:
    """Return how many labels are judged."""
    return labels.numel() if labels.ndim == 1 else int((labels != IGNORED).sum())


def evaluate(
    model: nn.Module,
    split: Split,
    *,
    batch_size: int = 64,
    batch_transform: BatchTransform | None = None,
) -> Evaluation:
    """Judge a model on every example of a split, once.

    Neither weights nor torch's random stream nor the model's mode change. The batches are the
    same for every model, so two models are compared on the same padding.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, blocks=1), task=dp.tasks["listops-mini"])
    >>> 0 <= dp.evaluate(model, dp.load("listops-mini", "test")).accuracy <= 100
    True

    Args:
        model: A classifier, or a language model for a language task.
        split: A loaded split.
        batch_size: Examples in a batch.
        batch_transform: What is made of each batch, from chance that is the same at every call.
    """
    batches = Batches(split, batch_size)
    device = next(model.parameters()).device
    by_site = split.kind is TaskKind.LANGUAGE or batch_transform is not None
    predictions = torch.empty(0 if by_site else len(split), dtype=torch.int64)
    loss, right, targets = 0.0, 0, 0
    mode = model.training
    model.eval()
    try:
        with torch.no_grad():
            for index, part in enumerate(batches.plan(0)):
                batch = batches.fill(part)
                if batch_transform is not None:
                    batch = batch_transform(batch, generator(0, "evaluation", index))
                batch = batch.to(device)
                logits = predict(model, batch)
                predicted = logits.argmax(dim=-1)
                count = count_targets(batch.labels)
                loss += float(cross_entropy(logits, batch.labels)) * count
                right += int((predicted == batch.labels).sum())
                targets += count
                if not by_site:
                    predictions[torch.from_numpy(part.indices.astype("int64"))] = predicted.cpu()
    finally:
        model.train(mode)
    return Evaluation(
        accuracy=100.0 * right / targets,
        loss=loss / targets,
        targets=targets,
        predictions=None if by_site else predictions,
    )
