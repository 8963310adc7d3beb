"""learn(model, split, config) → History: pretraining, where there is one, and the training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from depthpde.data.prepared import Split
from depthpde.models.classifier import Classifier
from depthpde.training.config import TrainingConfig
from depthpde.training.history import History, Status
from depthpde.training.loop import Watch, train
from depthpde.training.pretraining import PretrainingConfig, pretrain

PRETRAINING = "pretraining"
"""The folder of the first stage's checkpoints, inside that of the second's."""


def learn(
    model: nn.Module,
    split: Split,
    training: TrainingConfig,
    *,
    pretraining: PretrainingConfig | None = None,
    validation: Split | None = None,
    folder: str | Path | None = None,
    watch: Watch | None = None,
    watch_pretraining: Watch | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> History:
    """Train a model in one stage or in two, or take it up in whichever it stood.

    A first stage that was interrupted or diverged ends the run, and its history is returned.

    Args:
        model: A classifier, or a language model for a language task; trained in place.
        split: The training examples.
        training: How the model is trained.
        pretraining: What its encoder learns before; None is nothing.
        validation: Examples that choose the best weights and the end; never the test split.
        folder: Where checkpoints go; None keeps none.
        watch: Told after every update of the training.
        watch_pretraining: Told after every update of the pretraining.
        say: Told of anything unusual, one line at a time.
    """
    if pretraining is not None:
        if not isinstance(model, Classifier):
            raise ValueError(
                f"`pretraining` must be left out for a {type(model).__name__}: telling tokens is "
                "what it is trained for"
            )
        first = pretrain(
            model,
            split,
            pretraining,
            training,
            validation=validation,
            folder=None if folder is None else Path(folder) / PRETRAINING,
            watch=watch_pretraining,
            say=lambda line: say(f"pretraining: {line}"),
        )
        if first.status is not Status.DONE:
            first.notes.append(f"in pretraining, update {first.update} of {pretraining.updates}")
            return first
    return train(model, split, training, validation=validation, folder=folder, watch=watch, say=say)
