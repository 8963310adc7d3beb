"""Two hundred open boards while a sweep goes on: what they cost, and when a cell has changed.

    share of a core = CPU seconds of the dashboard / seconds, over ten seconds of a live run
    delay           = from a run's result on disk to its new cell on the last of the pages

A run of the folder goes on again for the time of the measurement: its result is put aside, its
status is written every second as a real run writes it, and then the result comes back whole.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from depthpde.files import write_json, write_whole
from depthpde.records.index.index import look_once
from depthpde.records.record import RESULT, STATUS, read_grids, run_folder
from depthpde.web.dashboard import SETTLED

PAGES = 200
WATCHED = 10
"""Seconds for which the run goes on."""
PATIENCE = 30.0
"""Seconds after which a page that shows nothing has failed."""


class OpenPage:
    """One connection to the board's events, as a browser holds it.

    Args:
        run: Whose cell it waits for.
    """

    def __init__(self, run: str) -> None:
        self._sign = re.compile(rf'href="/run/{run}" title="seed \d+: running')
        self._row = ""
        self.runs, self.ended = asyncio.Event(), asyncio.Event()

    async def follow(self, port: int) -> None:
        """Read events: the cell shows the run as running, and later no longer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        writer.write(b"GET /events/board HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        try:
            while not self.ended.is_set() and (line := await reader.readline()):
                if line.startswith(b"data: {"):
                    self._take(json.loads(line[6:]))
        finally:
            writer.close()

    def _take(self, sections: dict[str, str]) -> None:
        running = next((key for key, text in sections.items() if self._sign.search(text)), "")
        if running:
            self._row = running
            self.runs.set()
        elif self._row in sections:
            self.ended.set()


@contextmanager
def live_run(results: Path) -> Iterator[LiveRun]:
    """Let one run of the smallest grid go on for a while; it is as it was afterwards.

    The index is brought up to date first, so that no page waits for it.
    """
    look_once(results)
    grids = [grid for grid in read_grids(results).by_name.values() if grid.cells]
    grid = min(grids, key=lambda grid: len(grid.cells))
    folder = run_folder(results, grid.cells[0].run)
    kept = {name: (folder / name).read_bytes() for name in (RESULT, STATUS)}
    try:
        (folder / RESULT).unlink()
        run = LiveRun(folder, kept)
        run.beat(1)
        yield run
    finally:
        for name, content in kept.items():
            write_whole(folder / name, content)


@dataclass(frozen=True)
class LiveRun:
    """A run that goes on."""

    folder: Path
    kept: Mapping[str, bytes]
    """Its files when it has ended."""

    def beat(self, update: int) -> None:
        """Write its status, as a heartbeat does."""
        status = {"state": "running", "update": update, "updates": 1000, "heartbeat": time.time()}
        write_json(self.folder / STATUS, status)

    def end(self) -> None:
        """Write its result."""
        for name in (RESULT, STATUS):
            write_whole(self.folder / name, self.kept[name])


def measure_open_pages(run: LiveRun, port: int, worked: Callable[[], float]) -> tuple[float, float]:
    """Return the share of a core that so many open pages cost, and the delay of a change.

    Args:
        run: Of the folder that the dashboard serves.
        port: Where it does.
        worked: Returns the CPU seconds that it has used.
    """
    return asyncio.run(_watch(run, port, worked))


async def _watch(run: LiveRun, port: int, worked: Callable[[], float]) -> tuple[float, float]:
    pages = [OpenPage(run.folder.name) for _ in range(PAGES)]
    following = [asyncio.create_task(page.follow(port)) for page in pages]
    await asyncio.wait_for(asyncio.gather(*(page.runs.wait() for page in pages)), PATIENCE)
    await asyncio.sleep(2 * SETTLED)  # the folder's first thorough look is not theirs
    start, before = time.perf_counter(), worked()
    for update in range(2, 2 + WATCHED):
        run.beat(update)
        await asyncio.sleep(1.0)
    share = (worked() - before) / (time.perf_counter() - start)
    start = time.perf_counter()
    run.end()
    await asyncio.wait_for(asyncio.gather(*(page.ended.wait() for page in pages)), PATIENCE)
    delay = time.perf_counter() - start
    await asyncio.gather(*following)
    return share, delay
