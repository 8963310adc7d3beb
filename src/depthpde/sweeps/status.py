"""How the cells of a grid stand, and how long they will take."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthpde.records.index.entry import RunEntry
from depthpde.records.index.index import Index
from depthpde.records.record import FINISHED, RUNS, Cell, Grid, State


@dataclass(frozen=True, slots=True)
class CellStatus:
    """How one cell stands."""

    task: str
    variant: str
    seed: int
    run: str
    state: State
    update: int = 0
    updates: int = 0
    accuracy: float | None = None
    """Test accuracy in percent, once there is one."""
    seconds: float | None = None
    """What the run took; what is left of it while it runs; None where nothing is known."""
    error: str = ""

    @property
    def mark(self) -> str:
        """The cell in a table: an accuracy, a percentage done, or a word."""
        if self.accuracy is not None and self.state is not State.DIVERGED:
            return f"{self.accuracy:.1f}"
        if self.state is State.RUNNING:
            return f"{100 * self.update // max(1, self.updates)} %"
        if self.state is State.INTERRUPTED:
            return "paused"
        return "·" if self.state is State.PENDING else self.state.value


def cell_statuses(grid: Grid, results: Path | Index) -> list[CellStatus]:
    """Return how every cell of a grid stands, in the grid's order.

    Args:
        grid: Which runs.
        results: The results folder, or its index where somebody looks again and again.
    """
    index = results if isinstance(results, Index) else Index(results, outside=True)
    seen, now = index.look(math.inf), time.time()
    faults = {each.path: each.reason for each in seen.broken}
    return [
        _cell_status(cell, seen.entries.get(cell.run), faults.get(Path(RUNS) / cell.run, ""), now)
        for cell in grid.cells
    ]


def summary(cells: list[CellStatus], *, at_once: int = 0) -> dict[str, Any]:
    """Return the counts by state and the seconds left, each run counted once."""
    runs = list({each.run: each for each in cells}.values())
    counts = Counter(each.state.value for each in runs)
    return {
        "runs": len(runs),
        "finished": sum(each.state in FINISHED for each in runs),
        "states": {state.value: counts[state] for state in State if counts[state]},
        "seconds_left": seconds_left(runs, at_once=at_once),
    }


def seconds_left(runs: list[CellStatus], *, at_once: int = 0) -> float | None:
    """Estimate the time until all runs are recorded; None while nothing is known of their pace.

        (left of those that run + typical · number of those that wait) / number that run

    Typical is the mean over finished runs of the same task and variant, else of the task, else
    of all.

    Args:
        runs: Each once.
        at_once: How many were seen running together: between an end and the next start fewer are.
    """
    waiting = (State.PENDING, State.LOST, State.INTERRUPTED)
    left = [each for each in runs if each.state in (State.RUNNING, *waiting)]
    if not left:
        return 0.0
    running = [each for each in left if each.state is State.RUNNING]
    typical = _typical_seconds(runs)
    parts = [
        each.seconds
        if each.state is State.RUNNING and each.seconds is not None
        else next((typical[alike] for alike in _alike(each) if alike in typical), None)
        for each in left
    ]
    known = [each for each in parts if each is not None]
    if not known:
        return None
    total = sum(known) * len(parts) / len(known)
    together = max(1, len(running), min(at_once, len(left)))
    return max(total / together, max((each.seconds or 0.0 for each in running), default=0.0))


def _cell_status(cell: Cell, entry: RunEntry | None, fault: str, now: float) -> CellStatus:
    here = (cell.task, cell.variant, cell.seed, cell.run)
    if fault:
        return CellStatus(*here, State.FAILED, error=fault)
    if entry is None:
        return CellStatus(*here, State.PENDING)
    state, update, seconds = entry.state_at(now), entry.update, entry.seconds
    if state is State.RUNNING and update > entry.first:
        session = entry.heartbeat - entry.started
        seconds = session / (update - entry.first) * (entry.updates - update)
    error = entry.error if state is State.FAILED else ""
    return CellStatus(*here, state, update, entry.updates, entry.accuracy, seconds, error)


def _typical_seconds(runs: list[CellStatus]) -> dict[tuple[str, ...], float]:
    """Return the mean time of finished runs: by task and variant, by task, and of all."""
    times: dict[tuple[str, ...], list[float]] = {}
    for each in runs:
        if each.state in FINISHED and each.seconds is not None:
            for alike in _alike(each):
                times.setdefault(alike, []).append(each.seconds)
    return {alike: sum(each) / len(each) for alike, each in times.items()}


def _alike(cell: CellStatus) -> tuple[tuple[str, ...], ...]:
    """Name the groups that a cell belongs to, the narrowest first."""
    return (cell.task, cell.variant), (cell.task,), ()
