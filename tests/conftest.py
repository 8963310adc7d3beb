"""Uninitialised memory is NaN, and Triton runs in its interpreter."""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _uninitialised_memory_is_nan():
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
