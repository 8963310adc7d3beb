"""Server-sent events: what has been written since the last look, line by line.

An event's id says how far the files were read, so a browser that was cut off goes on exactly
where it was.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

EVERY = 0.5
"""Seconds between two looks."""
PULSE = 15.0
"""Seconds of silence after which a comment is sent: a closed page is noticed by it."""
AT_ONCE = 8 * 2**20
"""Bytes of a file read in one look."""
LAST = 2**20
"""Bytes that the last line of a file may have."""
POINTS = 1500
"""Points of a curve that a page is given at once: more than it has pixels for."""


class ServerEvent(NamedTuple):
    """One message to the page."""

    name: str
    data: Any
    id: str = ""

    def encode(self) -> bytes:
        """Write the event as the protocol wants it; JSON has no line breaks."""
        lines = [f"event: {self.name}", f"data: {json.dumps(self.data, allow_nan=False)}"]
        if self.id:
            lines.append(f"id: {self.id}")
        return ("\n".join(lines) + "\n\n").encode()


class Tail(NamedTuple):
    """What a file of lines holds beyond an offset."""

    lines: list[dict[str, Any]]
    offset: int
    bad: int
    """Lines that are no JSON objects; they are passed over."""


def read_tail(path: Path | None, offset: int) -> Tail:
    """Read the whole lines of a file beyond an offset; one still being written waits.

    A file that got shorter was written anew, and is read from its start.
    """
    if path is None:
        return Tail([], offset, 0)
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        if not 0 <= offset <= size:
            offset = 0
        stream.seek(offset)
        block = stream.read(AT_ONCE)
    whole = block[: block.rfind(b"\n") + 1]
    lines, bad = [], 0
    for line in whole.splitlines():
        found = _parse(line)
        if found is not None:
            lines.append(found)
        elif line.strip():
            bad += 1
    return Tail(lines, offset + len(whole), bad)


def read_last(path: Path | None) -> dict[str, Any] | None:
    """Read the last whole line of a file without reading all of it; None if it is no object."""
    if path is None:
        return None
    with path.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, 2) - LAST))
        block = stream.read(LAST)
    lines = block[: block.rfind(b"\n") + 1].splitlines()
    return _parse(lines[-1]) if lines else None


def thin(points: list[dict[str, Any]], most: int = POINTS) -> list[dict[str, Any]]:
    """Keep at most so many points, evenly, the last one always."""
    if len(points) <= most:
        return points
    stride = -(-len(points) // most)
    kept = points[::stride]
    return kept if kept[-1] is points[-1] else [*kept, points[-1]]


def stream(look: Callable[[], list[ServerEvent]], closing: Callable[[], bool]) -> StreamingResponse:
    """Answer with events for as long as the page is open.

    Args:
        look: Returns what is new since its last call; may read files.
        closing: Says that the server wants to end.
    """
    return StreamingResponse(_events(look, closing), media_type="text/event-stream")


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(
            line, parse_constant=lambda name: None, parse_float=_number, parse_int=_number
        )
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _number(text: str) -> float | int | None:
    """Return a number that a page can draw; None for one beyond all bounds, as for NaN."""
    value = float(text)
    if not math.isfinite(value):
        return None
    return int(text) if text.lstrip("-").isdigit() and len(text) < 20 else value


async def _events(
    look: Callable[[], list[ServerEvent]], closing: Callable[[], bool]
) -> AsyncIterator[bytes]:
    silence = PULSE  # something is sent at once, so that the page knows it is connected
    while not closing():
        events = await run_in_threadpool(look)
        for event in events:
            yield event.encode()
        silence = 0.0 if events else silence + EVERY
        if silence >= PULSE:
            yield b": still here\n\n"
            silence = 0.0
        await asyncio.sleep(EVERY)
