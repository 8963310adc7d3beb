"""Small models: 8 features, 2 blocks, 11 tokens, float64."""

import pytest
import torch

from depthpde.models.config import ModelConfig

SMALL = {"dim": 8, "heads": 2, "hidden": 16, "vocabulary": 11, "length": 12, "classes": 3}


@pytest.fixture
def small():
    def build(**settings):
        return ModelConfig(**{**SMALL, **settings})

    return build


@pytest.fixture
def tokens():
    return torch.randint(11, (3, 12), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def mask():
    return torch.arange(12) < torch.tensor([[12], [7], [1]])
