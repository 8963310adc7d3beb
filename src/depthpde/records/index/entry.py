"""What boards and tables need of a run: a few numbers, so that thousands fit in memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from depthpde.records.integrity import checksums
from depthpde.records.integrity.shape import is_number
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.records.record import (
    LOST_AFTER,
    RESULT,
    STATUS,
    Broken,
    Grid,
    Record,
    State,
)


class RunEntry(NamedTuple):
    """One run in an index; every field is a column of it.

    A tuple: twenty thousand are made in a tenth of the time that as many dataclasses take.
    """

    id: str
    label: str
    task: str
    seed: int
    state: State
    """As its files have it; see `state_at` for what they cannot know."""
    heartbeat: float
    """When a running run was last alive, in seconds since 1970."""
    started: float
    first: int
    """When its session began, and at which update."""
    update: int
    updates: int
    """Updates made and to be made; 0 where it is unknown."""
    accuracy: float | None
    """On the test split, in percent."""
    loss: float | None
    """On the test split, in nats."""
    targets: int | None
    """What the test accuracy was counted over."""
    trivial: Mapping[str, float]
    """What its task gives without learning, in percent; one object for all runs that agree."""
    seconds: float | None
    """What the whole run took."""
    error: str
    checked: bool
    """Whether its files have checksums; always false before it has finished."""
    digest: str
    """Of its numbers, as its own checksum says it; empty without one."""
    changed: float
    """When its status or result was last written, in seconds since 1970."""
    eta_seconds: float | None = None
    """How long it will still take, by its pace since it was first seen running."""

    def state_at(self, now: float) -> State:
        """Return the state of the run at a time: one without a recent heartbeat is lost."""
        if self.state is State.RUNNING and now - self.heartbeat > LOST_AFTER:
            return State.LOST
        return self.state


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything known at one moment; never changed, so pages can be drawn while looks go on."""

    entries: Mapping[str, RunEntry]
    """Id → run, sorted by id."""
    states: Mapping[str, State]
    """Id → how the run stands at that moment."""
    grids: Mapping[str, Grid]
    """Name → grid, sorted by name."""
    protocols: Mapping[str, StudyProtocol]
    """Name → what was laid down before the first run of the grid of that name."""
    broken: tuple[Broken, ...]
    """What could not be read, and why."""
    unread: int
    """Records that have not been read yet: the next looks will."""
    version: int
    """Grows whenever anything changes: two snapshots of one version show the same."""
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Run → the first grid that asks for it, and what it is called there."""


def summarize(record: Record) -> RunEntry:
    """Keep of a record what a board or a table shows."""
    status, state, result = record.status, record.state, record.result or {}
    test = result.get("test") or {}
    seconds: Any = result.get("seconds")
    loss: Any = test.get("loss")
    targets: Any = test.get("targets")
    lines: Any = result.get("trivial")
    known = lines.items() if isinstance(lines, Mapping) else ()
    return RunEntry(
        id=record.id,
        label=record.label,
        task=record.task,
        seed=record.seed,
        state=State.RUNNING if state is State.LOST and status.get("state") == "running" else state,
        heartbeat=float(status.get("heartbeat", 0.0)),
        started=float(status.get("started", 0.0)),
        first=int(status.get("first", 0)),
        update=int(status.get("update", 0)),
        updates=int(status.get("updates", 0)),
        accuracy=record.accuracy,
        loss=float(loss) if is_number(loss) else None,
        targets=targets if type(targets) is int else None,
        trivial={str(name): float(line) for name, line in known if is_number(line)},
        seconds=None if seconds is None else float(seconds),
        error=str(status.get("error", "")),
        checked=record.checked,
        digest=str((result.get(checksums.KEY) or {}).get("numbers", "")),
        changed=_changed(record.folder),
    )


def _changed(folder: Path) -> float:
    times = [0.0]
    for name in (STATUS, RESULT):
        with contextlib.suppress(OSError):
            times.append(os.stat(f"{folder}/{name}").st_mtime)
    return max(times)
