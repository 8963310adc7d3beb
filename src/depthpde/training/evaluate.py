"""Evaluate a model on a split: loss, accuracy, and what it said about every example."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthpde.data.batching import Batch, Batches
from depthpde.data.prepared import Split
from depthpde.data.task import Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """What a model reached on a split."""

    accuracy: float
    """Share right, in percent; of the tokens for a language task."""
    loss: float
    """Mean cross-entropy in nats, without smoothing."""
    targets: int
    """Labels judged: examples, or tokens for a language task."""
    predictions: Tensor | None
    """[examples] the class said for each, in the split's order; None for a language task."""


def predict(model: nn.Module, batch: Batch) -> Tensor:
    """Return the logits of a batch, [batch, classes] or [batch, length, vocabulary]."""
    if batch.second_tokens is None:
        return model(batch.tokens, batch.valid_mask)
    return model(batch.tokens, batch.valid_mask, batch.second_tokens, batch.second_mask)


def cross_entropy(logits: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """Return the mean cross-entropy over all labels, in nats.

    −Σ_c q_c log softmax(logits)_c,     q = (1 − s) · one-hot + s / classes
    """
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), label_smoothing=smoothing)


def evaluate(model: nn.Module, split: Split, *, batch_size: int = 64) -> Evaluation:
    """Judge a model on every example of a split, once.

    Neither weights nor torch's random stream nor the model's mode change. The batches are the
    same for every model, so two models are compared on the same padding.

    Args:
        model: A classifier, or a language model for a language task.
        split: A loaded split.
        batch_size: Examples in a batch.
    """
    batches = Batches(split, batch_size)
    device = next(model.parameters()).device
    language = split.kind is Kind.LANGUAGE
    predictions = torch.empty(0 if language else len(split), dtype=torch.int64)
    loss, right, targets = 0.0, 0, 0
    mode = model.training
    model.eval()
    try:
        with torch.no_grad():
            for part in batches.plan(0):
                batch = batches.fill(part).to(device)
                logits = predict(model, batch)
                said = logits.argmax(dim=-1)
                count = batch.labels.numel()
                loss += float(cross_entropy(logits, batch.labels)) * count
                right += int((said == batch.labels).sum())
                targets += count
                if not language:
                    predictions[torch.from_numpy(part.indices.astype("int64"))] = said.cpu()
    finally:
        model.train(mode)
    return Evaluation(
        accuracy=100.0 * right / targets,
        loss=loss / targets,
        targets=targets,
        predictions=None if language else predictions,
    )
