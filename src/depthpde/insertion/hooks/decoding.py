"""The windows of inserted layers, kept on the cache that a model passes from call to call.

A new sequence (no cache, or an empty one) starts anew, two sequences decoded in turns do not mix,
and the windows are freed with the cache.
"""

from __future__ import annotations

from functools import cache as remember
from typing import Any

import torch
from torch import Tensor

from depthpde.layers.decoding import Window

ATTRIBUTE = "depthpde_memory"


def windows_of(cache: Any) -> dict[str, Window]:
    """Return what inserted layers have read of the sequence of a cache; empty for a new one.

    Args:
        cache: The object that the model passes from call to call.
    """
    windows: dict[str, Window] | None = getattr(cache, ATTRIBUTE, None)
    if windows is None:
        windows = {}
        setattr(cache, ATTRIBUTE, windows)
        # Beam search reorders the rows of a cache through its methods and tells nobody else, so
        # the object's class is exchanged for one that takes the windows along.
        if not torch.compiler.is_compiling():
            kind: Any = type(cache)
            cache.__class__ = _following(kind)
    return windows


@remember
def _following(kind: Any) -> type:
    """Make a cache class that takes the windows along when its rows are reordered (beam search)."""

    class Following(kind):  # type: ignore[misc]
        def reorder_cache(self, beam_idx: Tensor) -> None:
            super().reorder_cache(beam_idx)
            _select(self, beam_idx)

        def batch_select_indices(self, indices: Tensor) -> None:
            super().batch_select_indices(indices)
            _select(self, indices)

        def batch_repeat_interleave(self, repeats: int) -> None:
            super().batch_repeat_interleave(repeats)
            for window in windows_of(self).values():
                field = window.sites.field
                rows = torch.arange(field.shape[0], device=field.device)
                window.sites = window.sites.take(rows.repeat_interleave(repeats))

    Following.__name__, Following.__qualname__ = kind.__name__, kind.__qualname__
    return Following


def _select(cache: Any, rows: Tensor) -> None:
    for window in windows_of(cache).values():
        window.sites = window.sites.take(rows.to(window.sites.field.device))
