"""The stages of a run, one after the other: pretraining where it has any, then training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from torch import nn

from depthpde.data.reader import Split
from depthpde.models.classifier import Classifier
from depthpde.runs.run import RunConfig
from depthpde.training.config import TrainingConfig
from depthpde.training.history import History, Status
from depthpde.training.loop import StepCallback, train
from depthpde.training.pretraining import pretrain

CHECKPOINTS = "checkpoints"
PRETRAINING = f"{CHECKPOINTS}-pretraining"
StageCallback = Callable[[nn.Module, TrainingConfig], StepCallback]
"""Called with the model and how a stage trains it; returns the callback of its updates."""


def run_stages(
    run: RunConfig,
    model: nn.Module,
    splits: Mapping[str, Split],
    folder: Path,
    *,
    callback: StageCallback,
    log: Callable[[str], None] = lambda line: None,
    pretrained: Callable[[History], None] = lambda history: None,
) -> History:
    """Take a model through the stages of its run, going on where checkpoints stand.

    Args:
        run: Says which stages there are.
        model: With its first weights; the last stage's when this returns.
        splits: Holds ``train`` and ``validation``.
        folder: Where the checkpoints of the stages lie, each in a folder of its own.
        callback: Called at the start of every stage; returns the callback of its updates.
        log: Called with anything unusual, one line at a time.
        pretrained: Called with what the pretraining was, once it has ended.

    Returns:
        The history of the training, with the notes of the pretraining; it is empty, but for how
        it ended, where pretraining was interrupted or diverged.
    """
    notes: list[str] = []
    if run.pretraining is not None:
        assert isinstance(model, Classifier), "refused by the run's config"
        stage = run.pretraining.stage(run.training)
        log(f"pretraining, {run.pretraining.objective}: {stage.updates} updates")
        before = pretrain(
            model,
            splits["train"],
            run.pretraining,
            run.training,
            validation=splits["validation"],
            folder=folder / PRETRAINING,
            callback=callback(model, stage),
            log=log,
        )
        pretrained(before)
        notes = [f"pretraining: {note}" for note in before.notes]
        if before.status is not Status.DONE:
            reason = before.reason and f"pretraining: {before.reason}"
            return History(status=before.status, signal=before.signal, reason=reason, notes=notes)
        log(f"training: {run.training.updates} updates")
    history = train(
        model,
        splits["train"],
        run.training,
        validation=splits["validation"],
        folder=folder / CHECKPOINTS,
        callback=callback(model, run.training),
        log=log,
    )
    history.notes[:0] = notes
    return history
