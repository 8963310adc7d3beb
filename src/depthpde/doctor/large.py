"""Large models: what is measured on fewer rows and sites, so that a diagnosis costs seconds.

    up to MANY parameters     every pass takes the whole batch, rounding is told by float64
    above                     attention and gradients take a few rows; passes that are only
                              compared with each other take a few rows of a few sites, and allow
                              1e-5 for rounding

The stream, norms and units are measured on the whole batch, whatever the size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.shapes import Mask

MANY = 2 * 10**7
"""Parameters from which on a model is large: no second set of weights in float64 is made."""
TOLERANCE = 1e-5
"""Relative move of an output of a large model that may be rounding."""
RANK_TOKENS = 128
"""Tokens of a large model of which the effective rank is measured: that is cubic."""
ROWS, SITES = 2, 16
"""Rows and sites of passes that are only compared with each other; decoding reads them all."""
FEW_TOKENS = 128
"""Tokens of a large model whose attention and gradients are measured: each keeps much in memory."""


def is_large(model: nn.Module) -> bool:
    """Tell whether a model has so many parameters that passes must be few.

    Args:
        model: The model.
    """
    return sum(each.numel() for each in model.parameters()) > MANY


def gradient_rows(model: nn.Module, batch: int, length: int, mask: Mask | None) -> Tensor | None:
    """Choose the rows of which gradients are measured, the fullest; None for all of them.

    Args:
        model: The model.
        batch: Rows of its stream.
        length: Sites of its stream.
        mask: True = real token.
    """
    few = max(1, FEW_TOKENS // length)
    if few >= batch or batch == length or not is_large(model):
        return None  # where batch and length are equal, rows cannot be told from sites
    if mask is None:
        return torch.arange(few)
    return mask.sum(dim=1).argsort(descending=True, stable=True)[:few].sort().values.cpu()


def of_rows(rows: Tensor, batch: int) -> Callable[[Any], Any]:
    """Give the function that takes some rows of a tensor of the batch and leaves all else.

    Args:
        rows: Which.
        batch: Rows of the batch.
    """

    def take(value: Any) -> Any:
        whole = isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == batch
        return value[rows.to(value.device)] if whole else value

    return take


def shorter(value: Any) -> Any:
    """Cut a row of tokens, or its mask, to the first sites.

    Args:
        value: One argument of a call.
    """
    tokens = isinstance(value, Tensor) and value.ndim == 2 and not value.is_floating_point()
    return value[:, :SITES] if tokens else value
