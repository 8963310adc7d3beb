"""What a results folder holds, kept in memory and brought up to date by what has changed.

A look lists the folder, asks four file times of every run that has not finished, and reads only
what changed. Finished runs do not change; in case one does after all, they are looked at in turns,
each at every sixteenth look. Nothing is written, and nothing that lies outside the results folder
is read, whatever links say.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from depthpde.pages.formatting import plain
from depthpde.records.record import (
    CONFIG,
    FINISHED,
    GRIDS,
    LOST_AFTER,
    RESULT,
    RUNS,
    STATUS,
    UNREADABLE,
    Broken,
    Grid,
    Record,
    State,
    read_grid,
    read_record,
)
from depthpde.records.ungrouped import UNGROUPED, UngroupedRun, settings_of, ungrouped_grid

FILES = (".", CONFIG, STATUS, RESULT)
"""Whose change means that a run must be read again; the folder's own for files that come and go."""
TURNS = 16
"""Finished runs are looked at in turns: a sixteenth of them at every look."""
PATIENCE = 0.25
"""Seconds that one look may read before it shows what it has; the rest comes with the next."""
OUTSIDE = "leads outside of the results folder, where the dashboard does not read"

Signature = tuple[tuple[int, int, int], ...]
"""Time, size and number of each file; zeros where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """What a board shows of a run: a few numbers, so that thousands fit in memory."""

    id: str
    label: str
    task: str
    seed: int
    state: State
    """As its files say; see `state_at` for what they cannot say."""
    heartbeat: float
    """When a running run was last alive, in seconds since 1970."""
    update: int
    updates: int
    """Updates made and to be made; 0 where it is not told."""
    accuracy: float | None
    """On the test split, in percent."""
    error: str
    eta_seconds: float | None
    settings: Mapping[str, str]
    """What a run of no grid is told apart by."""

    def state_at(self, now: float) -> State:
        """Say how the run stands at a time: one whose heart has stopped is lost."""
        if self.state is State.RUNNING and now - self.heartbeat > LOST_AFTER:
            return State.LOST
        return self.state


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything known at one moment; never changed, so pages can be drawn while looks go on."""

    entries: dict[str, RunEntry]
    """Id → run, sorted by id."""
    grids: dict[str, Grid]
    """Name → grid, sorted by name."""
    broken: tuple[Broken, ...]
    """What could not be read, and why."""
    unread: int
    """Records that have not been read yet: the next looks will."""
    version: int
    """Grows whenever anything changes."""
    now: float
    """When the look was taken."""

    def states(self) -> dict[str, State]:
        """Say how every run stands."""
        return {run: entry.state_at(self.now) for run, entry in self.entries.items()}

    def name(self, run: str) -> str:
        """Say which run this is, by what the first grid that asks for it calls it."""
        entry = self.entries[run]
        places = (cell for grid in self.grids.values() for cell in grid.cells if cell.run == run)
        place = next(places, None)
        variant = entry.label if place is None else place.variant
        return f"{entry.task} · {plain(variant)} · seed {entry.seed}"

    def all_grids(self) -> dict[str, Grid]:
        """Return the grids, and one of the runs that no grid names, as a report has it."""
        named = {cell.run for grid in self.grids.values() for cell in grid.cells}
        loose = ungrouped_grid(
            UngroupedRun(entry.id, entry.task, entry.label, entry.seed, entry.settings)
            for run, entry in sorted(self.entries.items())
            if run not in named
        )
        return self.grids | ({UNGROUPED: loose} if loose.cells else {})


class Index:
    """The runs and grids of one results folder.

    Args:
        results: The results folder.
    """

    def __init__(self, results: Path) -> None:
        self.root = results.resolve()
        self._lock = threading.Lock()
        self._signatures: dict[str, Signature] = {}
        self._entries: dict[str, RunEntry] = {}
        self._grids: dict[str, Grid] = {}
        self._broken: dict[str, Broken] = {}
        self._snapshot = Snapshot(entries={}, grids={}, broken=(), unread=0, version=0, now=0.0)
        self._records: dict[str, tuple[Signature, Record]] = {}
        self._first: dict[str, RunEntry] = {}
        self._settled: set[str] = set()
        self._looks = 0

    def look(self, patience: float = PATIENCE) -> Snapshot:
        """Take a look at the folder and return what it holds now.

        Args:
            patience: Seconds after which reading is left to the next look.
        """
        with self._lock:
            self._looks += 1
            there = dict(self._grid_files()) | dict(self._folders())
            changed = [key for key, each in there.items() if self._signatures.get(key) != each]
            gone = self._signatures.keys() - there.keys()
            for key in gone:
                self._forget(key)
            until, read = time.monotonic() + patience, 0
            for key in changed:
                self._forget(key)
                self._read(key)
                self._signatures[key] = there[key]
                read += 1
                if time.monotonic() > until:
                    break
            if changed or gone:
                self._snapshot = Snapshot(
                    entries=dict(sorted(self._entries.items())),
                    grids={each.name: each for _, each in sorted(self._grids.items())},
                    broken=tuple(each for _, each in sorted(self._broken.items())),
                    unread=len(changed) - read,
                    version=self._snapshot.version + 1,
                    now=time.time(),
                )
            else:
                self._snapshot = replace(self._snapshot, now=time.time())
            return self._snapshot

    def records(self, runs: Iterable[str]) -> dict[str, Record]:
        """Read the whole records of known runs; those that have not changed are read once."""
        found = {}
        for run in runs:
            signature = self._signatures.get(f"{RUNS}/{run}")
            kept = self._records.get(run)
            if kept is None or kept[0] != signature or kept[1].result is None:
                record = self.find(run)
                if record is None or signature is None:
                    continue
                kept = self._records[run] = (signature, record)
            found[run] = kept[1]
        return found

    def find(self, run: str) -> Record | None:
        """Read the whole record of a run that the index knows; None for any other name."""
        if run not in self._entries:
            return None
        try:
            self._refuse_links(self.root / RUNS / run)
            return read_record(self.root / RUNS / run)
        except UNREADABLE:
            return None  # it was there a moment ago; the next look says what is wrong

    def file(self, run: str, name: str) -> Path | None:
        """Return a file of a known run if it is there and truly inside the results folder."""
        path = self.root / RUNS / run / name
        if run not in self._entries or not path.is_file() or not self._inside(path):
            return None
        return path

    def _folders(self) -> Iterator[tuple[str, Signature]]:
        for number, each in enumerate(self._scan(RUNS)):
            key = f"{RUNS}/{each.name}"
            if key in self._settled and (number + self._looks) % TURNS:
                yield key, self._signatures[key]
            elif each.is_symlink() or each.is_dir(follow_symlinks=False):
                yield key, tuple(_signature(f"{each.path}/{name}") for name in FILES)

    def _grid_files(self) -> Iterator[tuple[str, Signature]]:
        for each in self._scan(GRIDS):
            if each.name.endswith(".json"):
                yield f"{GRIDS}/{each.name}", (_signature(each.path),)

    def _scan(self, name: str) -> Iterator[os.DirEntry[str]]:
        place = self.root / name
        self._broken.pop(name, None)
        if not place.is_dir():
            return
        if not self._inside(place):
            self._broken[name] = Broken(place, f"{place} {OUTSIDE}")
            return
        with os.scandir(place) as found:
            yield from (each for each in found if not each.name.startswith("."))

    def _inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.root)

    def _forget(self, key: str) -> None:
        self._signatures.pop(key, None)
        self._settled.discard(key)
        self._broken.pop(key, None)
        self._grids.pop(key, None)
        self._entries.pop(key.removeprefix(f"{RUNS}/"), None)

    def _read(self, key: str) -> None:
        path = self.root / key
        try:
            self._refuse_links(path)
            if key.startswith(f"{GRIDS}/"):
                self._grids[key] = read_grid(path)
            else:
                entry = self._entries[path.name] = self._timed(summarize(read_record(path)))
                if entry.state in FINISHED:
                    self._settled.add(key)
        except UNREADABLE as error:
            reason = str(error).replace(f"{self.root}{os.sep}", "")
            self._broken[key] = Broken(Path(key), reason)

    def _timed(self, entry: RunEntry) -> RunEntry:
        """Tell how long a run will still take, from its pace since it was first seen running."""
        if entry.state is not State.RUNNING:
            self._first.pop(entry.id, None)
            return entry
        first = self._first.get(entry.id)
        if first is None or entry.update < first.update:
            first = self._first[entry.id] = entry
        made, took = entry.update - first.update, entry.heartbeat - first.heartbeat
        if made <= 0 or took <= 0:
            return entry
        return replace(entry, eta_seconds=(entry.updates - entry.update) * took / made)

    def _refuse_links(self, path: Path) -> None:
        """Refuse a record any file of which is a link to the outside."""
        if path.is_symlink() and not self._inside(path):
            raise ValueError(f"{path} {OUTSIDE}")
        if path.is_dir():
            with os.scandir(path) as found:
                for each in found:
                    if each.is_symlink() and not self._inside(Path(each.path)):
                        raise ValueError(f"{each.path} {OUTSIDE}")


def summarize(record: Record) -> RunEntry:
    """Keep of a record what a board shows."""
    status, state = record.status, record.state
    return RunEntry(
        id=record.id,
        label=record.label,
        task=record.task,
        seed=record.seed,
        state=State.RUNNING if state is State.LOST else state,
        heartbeat=float(status.get("heartbeat", 0.0)),
        update=int(status.get("update", 0)),
        updates=int(status.get("updates", 0)),
        accuracy=record.accuracy,
        error=str(status.get("error", "")),
        eta_seconds=None,  # the index knows its pace
        settings=settings_of(record.config),
    )


def _signature(path: str) -> tuple[int, int, int]:
    try:
        found = os.lstat(path)
    except OSError:
        return (0, 0, 0)
    kind = -1 if stat.S_ISLNK(found.st_mode) else 1
    return (found.st_mtime_ns, found.st_size, kind * found.st_ino)
