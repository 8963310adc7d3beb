"""What a causal layer must remember between two calls of incremental decoding.

    y_i = f(u_{i−reach}, …, u_i)        one site for an upwind step

The sites are kept on the cache object that the model itself passes from call to call, so a new
sequence (no cache, or an empty one) starts anew, two sequences decoded in turns do not mix, and
the memory is freed with the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache as remember
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from depthpde.shapes import Field, Mask, Segments

ATTRIBUTE = "depthpde_memory"
UNCOUNTED = -1
"""How many sites a cache holds that keeps a state and no count of its sites: some."""


class Sites(NamedTuple):
    """Sites that a layer reads."""

    field: Field
    valid: Mask | None = None
    segments: Segments | None = None

    def take(self, rows: Tensor) -> Sites:
        """Keep these sequences of the batch, in this order."""
        return self._each(lambda each: each.index_select(0, rows))

    def end(self, count: int | None) -> Sites:
        """Keep the last sites; None for all."""
        first = 0 if count is None else max(self.field.shape[1] - count, 0)
        return self._each(lambda each: each[:, first:])

    def _each(self, change: Callable[[Tensor], Tensor]) -> Sites:
        rest = (None if each is None else change(each) for each in self[1:])
        return Sites(change(self.field), *rest)

    def then(self, new: Sites) -> Sites:
        """Put new sites behind these; where they name no segment, they continue the last."""
        valid = segments = None
        if self.valid is not None or new.valid is not None:
            valid = torch.cat((_all_real(self), _all_real(new)), dim=1)
        if self.segments is not None:
            last = self.segments[:, -1:].expand(-1, new.field.shape[1])
            segments = torch.cat((self.segments, last), dim=1)
        return Sites(torch.cat((self.field.to(new.field.dtype), new.field), dim=1), valid, segments)


@dataclass(slots=True)
class Trace:
    """The last sites that a layer has read."""

    sites: Sites
    seen: int
    """How many sites the layer has read in all."""


def advance(layer: nn.Module, new: Sites, *, cache: Any, seen: int, name: str) -> Field:
    """Apply a causal layer to the next sites of a sequence.

    Equal to the layer over the whole sequence: sites nearer to the window's start than the layer's
    reach are computed and thrown away. A layer without `reach` keeps the whole sequence.

    Args:
        layer: The causal layer.
        new: The new sites; their segments matter only where no site comes before.
        cache: The object that the model passes from call to call.
        seen: How many sites the cache holds, or UNCOUNTED.
        name: The layer's name, its key in the memory.
    """
    memory = _memory_of(cache)
    length = new.field.shape[1]
    window = new
    if seen != 0:
        before = _continued(memory.get(name), seen, name)
        seen, window = before.seen, before.sites.then(new)
    packed = {} if window.segments is None else {"segments": window.segments}
    out: Field = layer(window.field, valid_mask=window.valid, **packed)[:, -length:].contiguous()
    memory[name] = Trace(window.end(getattr(layer, "reach", None)), seen + length)
    return out


def _continued(trace: Trace | None, seen: int, name: str) -> Trace:
    if trace is None:
        raise ValueError(
            f"the cache holds {'some' if seen == UNCOUNTED else seen} tokens that {name!r} has "
            "never read; it was filled before the insertion or by another model: start with an "
            "empty cache"
        )
    if seen not in (trace.seen, UNCOUNTED):
        raise ValueError(
            f"the cache holds {seen} tokens but {name!r} has read {trace.seen}: the cache was cut "
            "back (assisted decoding does so); decode without an assistant, or use_cache=False"
        )
    return trace


def _all_real(sites: Sites) -> Mask:
    """Return which sites are real, also where no mask was given."""
    batch, length, _ = sites.field.shape
    if sites.valid is not None:
        return sites.valid.expand(batch, -1)
    return torch.ones(batch, length, dtype=torch.bool, device=sites.field.device)


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
                field = trace.sites.field
                rows = torch.arange(field.shape[0], device=field.device)
                trace.sites = trace.sites.take(rows.repeat_interleave(repeats))

    Following.__name__, Following.__qualname__ = kind.__name__, kind.__qualname__
    return Following


def _select(cache: Any, rows: Tensor) -> None:
    for trace in _memory_of(cache).values():
        trace.sites = trace.sites.take(rows.to(trace.sites.field.device))
