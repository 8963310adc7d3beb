"""How far the reading of a large results folder or a long simulation is, on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from depthpde.records.index.index import Progress

MANY = 500
"""Runs from which on a person would wonder what takes so long."""
WIDTH = 30
SLOW = 1.0
"""Seconds after which a person would wonder how far a simulation is."""


def reading_bar(stream: TextIO) -> Progress | None:
    """Return what draws a bar; None where nobody watches.

    Args:
        stream: Where to.
    """
    if not stream.isatty():
        return None

    def draw(done: int, of: int) -> None:
        if of < MANY or (done % 50 and done != of):
            return
        bar = _bar(done / of)
        end = "\r\033[K" if done == of else ""
        stream.write(f"\rreading runs {bar} {done:,} of {of:,}{end}")
        stream.flush()

    return draw


def time_bar(stream: TextIO, end: float) -> Callable[[float], None] | None:
    """Return what draws how far a simulation is, once it takes long; None where nobody watches.

    Args:
        stream: Where to.
        end: The time at which the simulation ends.
    """
    if not stream.isatty():
        return None
    begun = last = time.monotonic()

    def draw(t: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - begun < SLOW or (now - last < 0.1 and t < end):
            return
        last = now
        closing = "\r\033[K" if t >= end else ""
        stream.write(f"\rsimulating {_bar(t / end)} t = {t:.3g} of {end:.3g}{closing}")
        stream.flush()

    return draw


def _bar(share: float) -> str:
    full = int(WIDTH * min(1.0, share))
    return "█" * full + "·" * (WIDTH - full)
