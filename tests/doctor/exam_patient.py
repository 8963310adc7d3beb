"""A patient of the exam, and what a fault is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from depthpde.doctor.model_map import ModelMap, model_map


class DoesNotApply(Exception):  # noqa: N818
    """A family that cannot have a fault."""


@dataclass(frozen=True)
class Patient:
    """A model to be made wrong."""

    body: ModelMap
    seed: int
    length: int
    updates: dict[str, float]
    """What the training does otherwise: weight decay by component."""

    @property
    def model(self) -> nn.Module:
        return self.body.model

    def draw(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed)


def patient(model: nn.Module, seed: int, length: int) -> Patient:
    """Take a model as it is."""
    return Patient(model_map(model), seed, length, {})


Apply = Callable[[Patient, Any], None]


@dataclass(frozen=True)
class Fault:
    """One fault."""

    component: str
    name: str
    strengths: tuple[Any, ...]
    apply: Apply
