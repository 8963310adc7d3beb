"""What a causal layer must remember between two calls of incremental decoding.

    y_i = f(u_{i−reach}, …, u_i)        one site for an upwind step

The sites are kept on the cache object that the model itself passes from call to call, so a new
sequence (no cache, or an empty one) starts anew, two sequences decoded in turns do not mix, and
the memory is freed with the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache as remember
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.shapes import Field, Mask

ATTRIBUTE = "depthpde_memory"


@dataclass(slots=True)
class Trace:
    """The last sites that a layer has read."""

    sites: Field
    valid: Mask | None
    seen: int
    """How many sites the layer has read in all."""

    def take(self, rows: Tensor) -> None:
        """Keep these sequences of the batch, in this order."""
        self.sites = self.sites.index_select(0, rows)
        if self.valid is not None:
            self.valid = self.valid.index_select(0, rows)


def advance(
    layer: nn.Module, u: Field, valid: Mask | None, *, cache: Any, seen: int, name: str
) -> Field:
    """Apply a causal layer to the next sites of a sequence.

    Equal to the layer over the whole sequence: sites nearer to the window's start than the layer's
    reach are computed and thrown away. A layer without `reach` keeps the whole sequence.

    Args:
        layer: The causal layer.
        u: The new sites.
        valid: Which of them are real.
        cache: The object that the model passes from call to call.
        seen: How many sites the cache holds.
        name: The layer's name, its key in the memory.
    """
    memory = _memory_of(cache)
    window, window_valid = u, valid
    if seen > 0:
        trace = _continued(memory.get(name), seen, name)
        window = torch.cat((trace.sites.to(u.dtype), u), dim=1)
        window_valid = _joined(trace, u, valid)
    out: Field = layer(window, valid_mask=window_valid)[:, -u.shape[1] :].contiguous()
    reach = getattr(layer, "reach", None)
    kept = slice(None) if reach is None else slice(max(window.shape[1] - reach, 0), None)
    memory[name] = Trace(
        sites=window[:, kept],
        valid=None if window_valid is None else window_valid[:, kept],
        seen=seen + u.shape[1],
    )
    return out


def _continued(trace: Trace | None, seen: int, name: str) -> Trace:
    if trace is None:
        raise ValueError(
            f"the cache holds {seen} tokens that {name!r} has never read; it was filled before the "
            "insertion or by another model: start with an empty cache"
        )
    if trace.seen != seen:
        raise ValueError(
            f"the cache holds {seen} tokens but {name!r} has read {trace.seen}: the cache was cut "
            "back (assisted decoding does so); decode without an assistant, or use_cache=False"
        )
    return trace


def _joined(trace: Trace, u: Field, valid: Mask | None) -> Mask | None:
    if trace.valid is None and valid is None:
        return None
    before = _all_real(trace.sites) if trace.valid is None else trace.valid
    after = _all_real(u) if valid is None else valid.expand(u.shape[0], -1)
    return torch.cat((before, after), dim=1)


def _all_real(u: Field) -> Mask:
    return torch.ones(u.shape[:2], dtype=torch.bool, device=u.device)


def _memory_of(cache: Any) -> dict[str, Trace]:
    memory: dict[str, Trace] | None = getattr(cache, ATTRIBUTE, None)
    if memory is None:
        memory = {}
        setattr(cache, ATTRIBUTE, memory)
        if not torch.compiler.is_compiling():
            kind: Any = type(cache)
            cache.__class__ = _following(kind)
    return memory


@remember
def _following(kind: Any) -> type:
    """Make a cache class that takes the memory along when its rows are reordered (beam search)."""

    class Following(kind):  # type: ignore[misc]
        def reorder_cache(self, beam_idx: Tensor) -> None:
            super().reorder_cache(beam_idx)
            _select(self, beam_idx)

        def batch_select_indices(self, indices: Tensor) -> None:
            super().batch_select_indices(indices)
            _select(self, indices)

        def batch_repeat_interleave(self, repeats: int) -> None:
            super().batch_repeat_interleave(repeats)
            for trace in _memory_of(self).values():
                rows = torch.arange(trace.sites.shape[0], device=trace.sites.device)
                trace.take(rows.repeat_interleave(repeats))

    Following.__name__, Following.__qualname__ = kind.__name__, kind.__qualname__
    return Following


def _select(cache: Any, rows: Tensor) -> None:
    for trace in _memory_of(cache).values():
        trace.take(rows.to(trace.sites.device))
