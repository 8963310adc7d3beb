"""A task of counting: which of two tokens is the more frequent; and a model for it."""

import numpy as np
import torch

from depthpde.data.reader import Split
from depthpde.data.task import TaskKind
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.training.config import TrainingConfig

LENGTH = 24


def make_split(name="train", count=200, seed=0):
    random = np.random.default_rng([seed, len(name)])
    lengths = random.integers(5, LENGTH + 1, count)
    biases = random.choice((0.2, 0.8), count)
    drawn = [random.random(n) < bias for n, bias in zip(lengths, biases, strict=True)]
    return Split(
        name=name,
        kind=TaskKind.SEQUENCE,
        shift=1,
        length=LENGTH,
        vocabulary=3,
        classes=2,
        padding=None,
        mask_zero_pixels=False,
        tokens=np.concatenate(drawn).astype(np.uint8),
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        labels=np.array([each.mean() > 0.5 for each in drawn]).astype(np.uint8),
        pairs=None,
    )


def make_model(seed=0, **settings):
    chosen = {
        "dim": 8, "blocks": 1, "heads": 2, "hidden": 16, "dropout": 0.1, "vocabulary": 3,
        "length": LENGTH, "classes": 2, "positions": ("after_embedding",),
    }  # fmt: skip
    config = ModelConfig(**(chosen | settings))
    return Classifier(config, generator=torch.Generator().manual_seed(seed))


def make_config(**settings):
    chosen = {
        "updates": 30, "batch_size": 16, "warmup": 5, "evaluate_every": 8, "checkpoint_every": 7,
        "log_every": 4, "learning_rate": 1e-2,
    }  # fmt: skip
    return TrainingConfig(**(chosen | settings))
