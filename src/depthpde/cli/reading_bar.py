"""How far the reading of a large results folder is, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from depthpde.records.index.index import Progress

MANY = 500
"""Runs from which on a person would wonder what takes so long."""
WIDTH = 30


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
        full = WIDTH * done // of
        bar = "█" * full + "·" * (WIDTH - full)
        end = "\r\033[K" if done == of else ""
        stream.write(f"\rreading runs {bar} {done:,} of {of:,}{end}")
        stream.flush()

    return draw
