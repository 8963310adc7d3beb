"""A task that takes no time: ListOps with a few examples, prepared as always."""

from __future__ import annotations

from dataclasses import replace

import pytest

from depthpde.data.catalog import prepare
from depthpde.data.tasks import TASKS
from depthpde.models.config import ModelConfig
from depthpde.runs.run import RunConfig
from depthpde.training.config import TrainingConfig

SMALL = {"train": 96, "validation": 32, "test": 48}


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Prepare ListOps with few examples, and return the folder."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(replace(TASKS["listops-mini"], splits=SMALL), out=folder)
    return folder


@pytest.fixture(scope="session")
def run():
    """Return a run of eight updates on that task."""
    return small_run()


def small_run():
    """Make a run of eight updates on that task."""
    return RunConfig(
        task="listops-mini",
        model=ModelConfig(dim=8, blocks=1, heads=2, positions=("after_embedding",)),
        training=TrainingConfig(
            updates=8, warmup=2, batch_size=8, evaluate_every=4, checkpoint_every=2, log_every=2
        ),
    )
