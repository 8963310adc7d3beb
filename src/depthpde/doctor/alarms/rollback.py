"""Rollback: weights and optimizer as they were while every series still kept its trend.

The copy lies in memory; the batches go on, so what disturbed a training is not met again.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer


class Rollback:
    """A copy of a model in training and of its optimizer.

    Args:
        model: The model.
        optimizer: What updates it; its learning rates stay as they are, everything else goes back.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.update: int | None = None
        self._weights: dict[str, Any] = {}
        self._state: dict[str, Any] = {}

    def keep(self, update: int) -> None:
        """Copy weights, buffers and the optimizer's state.

        Args:
            update: The number of updates that were made.
        """
        self.update = update
        self._weights = {
            name: value.detach().clone() if isinstance(value, torch.Tensor) else value
            for name, value in self.model.state_dict().items()
        }
        self._state = copy.deepcopy(self.optimizer.state_dict())

    def restore(self) -> int:
        """Put everything back; return the update it was kept at."""
        assert self.update is not None, "kept before"
        self.model.load_state_dict(self._weights)
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.optimizer.load_state_dict(copy.deepcopy(self._state))
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self.optimizer.zero_grad()
        return self.update
