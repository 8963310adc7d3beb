"""Incremental decoding: what a causal layer remembers between two calls.

    y_i = f(u_{i−reach}, …, u_i)        one site for an upwind step

Every layer keeps, under its name, the last `reach` sites that it has read; new sites are computed
over those and themselves, so one new site costs the work of one window. Our own models keep these
windows in a `DecodeCache`; layers inserted in other models keep them on the cache that such a model
passes along itself (`insertion/hooks/decoding.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from depthpde.layers.ratio import HeldRatio
from depthpde.shapes import Field, Mask, Segments

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
        length = self.field.shape[1]
        if count is None or count >= length:
            return self
        if self.valid is None and self.segments is None:  # every token that a decoder writes
            return Sites(self.field.narrow(1, length - count, count))
        return self._each(lambda each: each.narrow(1, length - count, count))

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
            own = last if new.segments is None else new.segments
            segments = torch.cat((self.segments, own), dim=1)
        old = self.field if self.field.dtype is new.field.dtype else self.field.to(new.field.dtype)
        return Sites(torch.cat((old, new.field), dim=1), valid, segments)


@dataclass(slots=True)
class Window:
    """The last sites that a layer has read."""

    sites: Sites
    seen: int
    """How many sites the layer has read in all."""
    held: HeldRatio | None = None
    """The layer's ratio, where one site and the one in front of it decide."""


class DecodeCache:
    """What has passed by already, kept so that one new site costs the work of one site.

    A causal model meets it twice: with all sites of the prompt, then with one new site at a
    time. It grows with use, and belongs to one batch of sequences.
    """

    def __init__(self) -> None:
        self.sites = 0
        """How many sites the model has read."""
        self.windows: dict[str, Window] = {}
        """Of every placed layer, by its name."""
        self._kept: dict[str, Tensor] = {}

    def join(self, name: str, u: Tensor, *, axis: int = 1) -> Tensor:
        """Return what is past with what is new behind it, and remember both: keys and values.

        Args:
            name: What passes by.
            u: What is new.
            axis: Axis of the sites.
        """
        joined = torch.cat((self._kept[name], u), dim=axis) if name in self._kept else u
        self._kept[name] = joined
        return joined


def decode(
    layer: nn.Module, new: Sites, *, windows: dict[str, Window], seen: int, name: str
) -> Field:
    """Apply a causal layer to the next sites of a sequence.

    Equal to the layer over the whole sequence: sites nearer to the window's start than the layer's
    reach are computed and thrown away. A layer without `reach` keeps the whole sequence.

    Args:
        layer: The causal layer.
        new: The new sites.
        windows: What layers have read of this sequence, by name; changed.
        seen: How many sites were read before, or UNCOUNTED.
        name: The layer's name.
    """
    if seen == 0:
        out, kept = _apply(layer, new), new.end(getattr(layer, "reach", None))
        # the model's own memory, which it may write into or let go
        windows[name] = Window(kept._replace(field=kept.field.clone()), new.field.shape[1])
        return out.contiguous()
    window = _continued(windows.get(name), seen, name)
    if new.valid is new.segments is None:
        following = next_site(layer, new.field, window, seen)
        if following is not None:
            return following
    length = new.field.shape[1]
    if length == 1 and getattr(layer, "takes_before", False) and _joins(window.sites, new):
        out = layer(new.field, before=window.sites.field)
        window.held = layer.hold_ratio(new.field)  # type: ignore[operator]
        copied = new.field.clone() if window.held is None else window.held.kept(new.field)
        window.sites = Sites(copied)
    else:
        both = window.sites.then(new)
        whole = _apply(layer, both)
        out = whole.narrow(1, whole.shape[1] - length, length).contiguous()
        window.sites = both.end(getattr(layer, "reach", None))
        window.held = None  # there may be a wall now, or another precision
    window.seen += length
    return out


def next_site(layer: nn.Module, u: Field, window: Window | None, seen: int) -> Field | None:
    """Compute the next site of a sequence from the one in front of it, by a ratio that is held.

        u ← u + r (before − u)

    What a decoder does for every token: between two large products the processor's cache holds
    none of it, so it is two operations of torch and a few comparisons.

    Args:
        layer: The causal layer.
        u: What may be the next site.
        window: What the layer has read; changed.
        seen: How many sites were read before, or UNCOUNTED.

    Returns:
        None where more than this decides: the whole of `decode` is needed.
    """
    if window is None or torch.is_grad_enabled():
        return None
    held, before = window.held, window.sites.field
    if (
        held is None
        or u.dtype is not held.dtype
        or u.shape != before.shape
        or seen not in (window.seen, UNCOUNTED)
        or not held.serves(layer)
    ):
        return None
    window.seen += 1
    if u.dtype is before.dtype:
        window.sites = Sites(u.clone())
        return torch.lerp(u, before, held.ratio)
    wide = held.kept(u)
    window.sites = Sites(wide)
    return torch.lerp(wide, before, held.ratio).to(u.dtype)


def _apply(layer: nn.Module, sites: Sites) -> Field:
    if sites.segments is None:
        return layer(sites.field, valid_mask=sites.valid)
    return layer(sites.field, valid_mask=sites.valid, segments=sites.segments)


def _joins(before: Sites, new: Sites) -> bool:
    """Tell whether no wall and no other precision can stand between two sites."""
    return (
        before.valid is before.segments is new.valid is new.segments is None
        and before.field.dtype is new.field.dtype
    )


def _continued(window: Window | None, seen: int, name: str) -> Window:
    if window is None:
        raise ValueError(
            f"the cache holds {'some' if seen == UNCOUNTED else seen} tokens that {name!r} has "
            "never read; it was filled before the insertion or by another model: start with an "
            "empty cache"
        )
    if seen not in (window.seen, UNCOUNTED):
        raise ValueError(
            f"the cache holds {seen} tokens but {name!r} has read {window.seen}: the cache was cut "
            "back (assisted decoding does so); decode without an assistant, or use_cache=False"
        )
    return window


def _all_real(sites: Sites) -> Mask:
    """Return which sites are real, also where no mask was given."""
    batch, length, _ = sites.field.shape
    if sites.valid is not None:
        return sites.valid.expand(batch, -1)
    return torch.ones(batch, length, dtype=torch.bool, device=sites.field.device)
