"""Self-pretraining: the encoder first learns the task's own training inputs, labels unseen.

    masked    predict the hidden tokens from all others
    causal    predict each next token from those before it

On Long Range Arena nothing lifts a Transformer more, so it is a stage of a run like any other:
configured, resumed to the bit, recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from depthpde.config import Positive, Range, Settings
from depthpde.data.batching import Batch
from depthpde.data.reader import Split
from depthpde.data.task import TaskKind
from depthpde.layers.embedding import InputKind
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.encoder import Encoder
from depthpde.models.initialisation import initialise
from depthpde.seeds import generator
from depthpde.shapes import Field, Mask
from depthpde.training.config import Keep, TrainingConfig
from depthpde.training.evaluate import IGNORED, BatchTransform
from depthpde.training.history import History, Status
from depthpde.training.loop import StepCallback, train
from depthpde.training.schedule import Schedule

HIDDEN = -1
"""The token of a site whose own token is to be predicted."""
_SYMBOLS = 64
"""An alphabet smaller than this is one of symbols, not of bytes."""


class Objective(StrEnum):
    """What is predicted."""

    MASKED = "masked"
    """Hidden tokens, from both sides."""
    CAUSAL = "causal"
    """The next token, from the past; the encoder takes its causal form in this stage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainingConfig(Settings):
    """How an encoder is pretrained. None leaves a setting as it is in the training that follows.

    >>> stage = dp.PretrainingConfig(objective="masked", share=0.15, updates=400)
    """

    objective: Objective | str = Objective.MASKED
    """What is predicted."""
    share: Annotated[float, Range(0.001, 0.999)] | None = None
    """Share of tokens hidden; None is 1/2 of pixels, 15 % of bytes, 10 % of symbols."""
    updates: Positive = 1000
    """Optimizer updates of this stage."""
    batch_size: int | None = None
    """Examples in one batch."""
    learning_rate: Annotated[float, Range(1e-12, 1e3)] | None = None
    """At the peak of the schedule."""
    schedule: Schedule | str | None = None
    """How the learning rate falls after the warm-up."""
    warmup: int | None = None
    """Updates in which the learning rate rises; at most a tenth of them unless given."""
    weight_decay: Annotated[float, Range(0.0, 1e3)] | None = None
    """Decoupled, on matrices and tables only."""

    def check(self) -> None:
        """Refuse a stage that cannot run."""
        if self.share is not None and self.objective is Objective.CAUSAL:
            raise ValueError(
                f"`share` must be left out for the causal objective, got {self.share:g}: "
                "every next token is predicted"
            )
        self.stage(TrainingConfig())

    def stage(self, training: TrainingConfig) -> TrainingConfig:
        """Return how this stage is trained: as what follows it, unless set otherwise.

        The last weights are kept, not the best ones: this objective is not the final one.
        """
        names = ("batch_size", "learning_rate", "schedule", "weight_decay")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        warmup = min(training.warmup, self.updates // 10) if self.warmup is None else self.warmup
        return replace(
            training,
            updates=self.updates,
            warmup=warmup,
            keep=Keep.LAST,
            patience=None,
            label_smoothing=0.0,
            **given,
        )


def pretrain(
    model: Classifier,
    split: Split,
    config: PretrainingConfig,
    training: TrainingConfig,
    *,
    validation: Split | None = None,
    folder: str | Path | None = None,
    callback: StepCallback | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> History:
    """Pretrain the encoder of a classifier on its task's own inputs, or take that up again.

    The labels are never looked at. When the stage is done the encoder holds what it learned, and
    the head its first weights; until then the model is as it was.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, blocks=1), task=dp.tasks["listops-mini"])
    >>> stage, training = dp.PretrainingConfig(updates=2, warmup=0), dp.TrainingConfig()
    >>> history = dp.pretrain(model, dp.load("listops-mini", "train"), stage, training)

    Args:
        model: The classifier, with its first weights.
        split: The training examples.
        config: The objective, and for how long.
        training: The training that follows.
        validation: Examples whose hidden tokens are predicted along the way, for the record.
        folder: Where this stage's checkpoints go; not the folder of the training that follows.
        callback: Called after every update.
        log: Called with anything unusual, one line at a time.
    """
    symbols = split.channels is None and split.kind is not TaskKind.LANGUAGE
    if not symbols or model.config.input is InputKind.PATCH:
        raise ValueError(
            "`pretraining` must be left out for language tasks and patch inputs, got "
            f"{split.kind.value} examples with {model.config.input} input"
        )
    predictor = TokenPredictor(model.config, config, seed=training.seed)
    predictor.to(next(model.parameters()).device)
    predictor.encoder.load_state_dict(model.encoder.state_dict())
    history = train(
        predictor,
        split,
        config.stage(training),
        validation=validation,
        folder=folder,
        callback=callback,
        log=log,
        batch_transform=batch_transform(config, split),
    )
    if history.status is Status.DONE:
        model.encoder.load_state_dict(predictor.encoder.state_dict())
    return history


@dataclass(frozen=True, slots=True)
class TokenPredictorConfig:
    """What a teller is made of."""

    model: ModelConfig
    pretraining: PretrainingConfig

    def to_dict(self) -> dict[str, Any]:
        """Return the config as plain JSON values."""
        return {"model": self.model.to_dict(), "pretraining": self.pretraining.to_dict()}


class TokenPredictor(nn.Module):
    """An encoder that predicts tokens instead of a class.

        logits(x) = W field(x) + b,     u(x) = a learned vector wherever x is hidden

    Learned: the encoder, the vector, W and b. Only the encoder is handed on.

    Args:
        config: Of the classifier whose encoder it is.
        pretraining: Says whether the encoder may see the future.
        seed: Of the head's first weights.
    """

    def __init__(self, config: ModelConfig, pretraining: PretrainingConfig, *, seed: int) -> None:
        super().__init__()
        if pretraining.objective is Objective.CAUSAL:
            config = replace(config, causal=True)
        assert config.vocabulary is not None, "a classifier knows its vocabulary"
        self.config = TokenPredictorConfig(config, pretraining)
        with torch.random.fork_rng(devices=[]):  # what they draw while being built is replaced
            self.encoder = Encoder(config)
            self.hidden = nn.Parameter(torch.zeros(config.dim))
            self.head = nn.Linear(config.dim, config.vocabulary)
        initialise(self, config, generator(seed, "teller"))
        self._now: Tensor | None = None
        self.encoder.embedding.register_forward_hook(self._hide)

    def forward(self, tokens: Tensor, valid_mask: Mask | None = None) -> Tensor:
        """Return the logits of every site's token, [batch, length, vocabulary]."""
        self._now = tokens == HIDDEN
        field, _ = self.encoder(tokens.clamp_min(0), valid_mask)
        return self.head(field[:, self.config.model.prefix :])

    def _hide(self, module: nn.Module, inputs: tuple[Tensor, ...], u: Field) -> Field:
        assert self._now is not None, "set by forward"
        return torch.where(self._now[..., None], self.hidden.to(u.dtype), u)


def batch_transform(config: PretrainingConfig, split: Split) -> BatchTransform:
    """Return what makes a batch with tokens to predict out of a batch with classes.

    masked    labels = tokens where hidden; the rest, padding too, is not judged
    causal    labels(x) = tokens(x + 1), up to the last real token
    """
    share = config.share or usual_share(split)

    def change(batch: Batch, chance: torch.Generator) -> Batch:
        tokens, valid = batch.tokens, batch.valid_mask
        assert valid is not None, "windows of a text are a language task, which is not pretrained"
        if batch.second_tokens is not None and batch.second_mask is not None:
            tokens = torch.cat((tokens, batch.second_tokens))
            valid = torch.cat((valid, batch.second_mask))
        if config.objective is Objective.CAUSAL:
            after = torch.where(valid, tokens, IGNORED)[:, 1:]
            return Batch(tokens, valid, nn.functional.pad(after, (0, 1), value=IGNORED))
        hidden = choose_hidden(valid, share, chance)
        labels = torch.where(hidden, tokens, IGNORED)
        return Batch(torch.where(hidden, HIDDEN, tokens), valid, labels)

    return change


def choose_hidden(valid_mask: Mask, share: float, chance: torch.Generator) -> Mask:
    """Choose a share of the real tokens of every sequence, at least one of them.

    The number is exact: max(1, round(share · tokens)); padding is never chosen.
    """
    draws = torch.rand(valid_mask.shape, generator=chance, device="cpu").masked_fill(
        ~valid_mask, 2.0
    )
    counts = valid_mask.sum(dim=1, keepdim=True)
    wanted = torch.round(share * counts).long().clamp_min(1)
    ranks = draws.argsort(dim=1).argsort(dim=1)
    return (ranks < wanted) & valid_mask


def usual_share(split: Split) -> float:
    """Return the share hidden by Amos et al. (2024): pixels 50 %, text 15 %, ListOps 10 %."""
    if split.kind is TaskKind.IMAGE:
        return 0.5
    return 0.1 if split.vocabulary < _SYMBOLS else 0.15
