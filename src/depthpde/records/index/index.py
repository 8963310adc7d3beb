"""Runs and grids of a results folder, brought up to date by looking only at what changed.

A look lists the folder, asks the file times of every run that has not finished, and reads what
changed. Finished runs do not change; in case one does after all, they are looked at in turns, each
at every sixteenth look, and all of them at the first. What was read is kept in SQLite for the next
process; the files stay the truth.
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from depthpde.files import local_names
from depthpde.records.index.entry import RunEntry, Snapshot
from depthpde.records.index.folders import ResultsFolder, Signature
from depthpde.records.index.named_files import NamedFiles
from depthpde.records.index.reading import (
    faults,
    keep_parts,
    make_record,
    make_summary,
    read_row,
)
from depthpde.records.index.store import IndexRow, Kept, Store, open_store, remove, unpack
from depthpde.records.protocols.sealing import PROTOCOLS, read_protocol
from depthpde.records.record import (
    FINISHED,
    GRIDS,
    RUNS,
    UNREADABLE,
    Broken,
    Grid,
    Record,
    State,
    read_grid,
    read_record,
)
from depthpde.records.ungrouped import UNGROUPED, UngroupedRun, settings_of, ungrouped_grid

TURNS = 16
"""Finished runs are looked at in turns: a sixteenth of them at every look."""
PATIENCE = 0.25
"""Seconds that one look may read before it shows what it has; the rest comes with the next."""
BATCH = 256
"""Rows that are written at once, so that other writers have their turn."""

Progress = Callable[[int, int], None]
"""Called with how many of the changed runs have been read, and how many there are."""


class Index:
    """The runs and grids of one results folder.

    Args:
        results: The results folder.
        outside: Read runs behind links that lead outside of it; a server must not.
        stored: Keep what was read in a file beside the runs, where that can be written.
    """

    def __init__(self, results: Path, *, outside: bool = False, stored: bool = True) -> None:
        self.folder = ResultsFolder(results, outside=outside)
        self.root = self.folder.root
        self._lock = threading.Lock()
        self._rows: dict[str, IndexRow] = {}
        self._grids = NamedFiles(self.folder, GRIDS, read_grid)
        self._protocols = NamedFiles(self.folder, PROTOCOLS, read_protocol)
        self._broken: dict[str, Broken] = {}
        self._first: dict[str, RunEntry] = {}
        self._stale: set[str] = set()
        self._lines: dict[str, Mapping[str, float]] = {}
        self._snapshot = Snapshot(
            entries={}, states={}, grids={}, protocols={}, broken=(), unread=0, version=0
        )
        self._named: tuple[int, dict[str, Grid]] = (-1, {})
        self._looks = 0
        self._thorough = False
        self._wanted = stored
        self._home = self._find_home()
        self._store = open_store(self._home)
        for row in self._stored(lambda store: store.read()) or ():
            self._rows[row.id] = row

    @property
    def snapshot(self) -> Snapshot:
        """What the last look found."""
        return self._snapshot

    def look(
        self,
        patience: float = PATIENCE,
        progress: Progress | None = None,
        *,
        thorough: bool | None = None,
    ) -> Snapshot:
        """Take a look at the folder and return what it holds now.

        Args:
            patience: Seconds after which reading is left to the next look.
            progress: Called with how far the reading is.
            thorough: Look at every finished run's files too, not only at those whose turn it is;
                so at the first look unless told otherwise.
        """
        with self._lock:
            self._looks += 1
            self._thorough = self._looks == 1 if thorough is None else thorough
            if self._home is None:
                self._home = self._find_home()
                if self._home is not None:  # the first runs have come
                    self._replace_store(self._home)
            elif not self._store.is_there:
                self._replace_store(self._home)
            there = dict(self.folder.runs(self._settled))
            changed = [run for run, each in there.items() if self._is_new(run, each)]
            gone = self._rows.keys() - there.keys()
            for run in gone:
                self._forget(run)
            read = self._read_runs(changed, there, time.monotonic() + patience, gone, progress)
            news = self._grids.look() | self._protocols.look() | self._refusals()
            states = self._states(time.time(), fresh=bool(changed or gone or self._looks == 1))
            if news or states is not self._snapshot.states:
                self._snapshot = self._draw(states, len(changed) - read)
            return self._snapshot

    def close(self) -> None:
        """Close the file of the index."""
        self._store.close()

    def records(self, runs: Iterable[str]) -> dict[str, Record]:
        """Return the whole records of known runs."""
        found = {run: self.record(run) for run in runs}
        return {run: each for run, each in found.items() if each is not None}

    def record(self, run: str) -> Record | None:
        """Return the whole record of a run as the last look found it; None for any other name."""
        row = self._rows.get(run)
        if row is None or row.entry is None:
            return None
        if row.entry.state not in FINISHED:
            return self.find(run)
        files = self._stored(lambda store: store.files(run, row.signature)) or (None, None, None)
        stored, curve, probe = (partial(self._unpack, each) for each in files)
        if (values := stored()) is None:
            return self.find(run)
        return keep_parts(make_record(row, self.root / RUNS / run, values), row, curve, probe)

    def summaries(self, runs: Iterable[str]) -> dict[str, Record]:
        """Return records of known runs that hold their scores alone, made without reading a file.

        What a comparison needs: state, test accuracy and loss, trivial lines; config, curve and
        probe are read when they are asked for. Use `records` for all else.
        """
        found, place = {}, self.root / RUNS
        for run in runs:
            row = self._rows.get(run)
            if row is not None and row.entry is not None:
                record = make_summary(row.entry, place / run, partial(self._config, run))
                found[run] = self._with_parts(record, row)
        return found

    def find(self, run: str) -> Record | None:
        """Read the whole record of a known run from its files; None for any other name."""
        if run not in self._snapshot.entries:
            return None
        folder = self.root / RUNS / run
        try:
            if not self.folder.outside and self.folder.leads_outside(folder):
                return None
            return read_record(folder)
        except UNREADABLE:
            return None  # it was there a moment ago; the next look says what is wrong

    def file(self, run: str, name: str) -> Path | None:
        """Return a file of a known run if it is there and truly inside the results folder."""
        path = self.root / RUNS / run / name
        if run not in self._snapshot.entries or not path.is_file():
            return None
        return path if self.folder.outside or self.folder.contains(path) else None

    def fingerprint(self, runs: Iterable[str]) -> str:
        """Name the state of some runs: of two that are alike nothing that is finished differs."""
        rows = (self._rows.get(run) for run in runs)
        known = (r.signature for r in rows if r and r.entry and r.entry.state in FINISHED)
        return blake2b("".join(known).encode(), digest_size=16).hexdigest()

    def unread_parts(self) -> list[Broken]:
        """Return the curves and probes that cannot be read, by their paths inside the folder."""
        found = []
        for run, row in sorted(self._rows.items()):
            parts = row.parts
            if row.entry is not None and row.entry.state not in FINISHED:
                record = self.find(run)  # it goes on, so nothing of its curve is kept
                parts = () if record is None else faults(record)
            found += [Broken(Path(RUNS) / run / name, reason) for name, reason in parts]
        return found

    def all_grids(self) -> dict[str, Grid]:
        """Return the grids, and one of the runs that no grid names, as a report has it."""
        now = self._snapshot
        if self._named[0] != now.version:
            loose = [run for run in now.entries if run not in now.places]
            records = (self.record(run) for run in loose)
            grid = ungrouped_grid(
                UngroupedRun(each.id, each.task, each.label, each.seed, settings_of(each.config))
                for each in records
                if each is not None
            )
            self._named = (now.version, dict(now.grids) | ({UNGROUPED: grid} if grid.cells else {}))
        return self._named[1]

    def _config(self, run: str) -> Mapping[str, Any]:
        record = self.record(run)
        return {} if record is None else record.config

    def _with_parts(self, record: Record, row: IndexRow) -> Record:
        if record.result is None:
            return record
        ask = self._stored
        return keep_parts(
            record, row, lambda: ask(lambda store: store.curve(row.id, row.signature)),
            lambda: ask(lambda store: store.probe(row.id, row.signature)),
        )  # fmt: skip

    def _find_home(self) -> Path | None:
        """Return where the file belongs: nowhere before there are runs, or where they are not."""
        runs = self.root / RUNS
        inside = self._wanted and runs.is_dir() and self.folder.contains(runs)
        return self.root if inside else None

    def _replace_store(self, home: Path | None) -> None:
        """Begin another file; what boards show stays, and every run is read into it anew."""
        self._store.close()
        self._store = open_store(home)
        self._stale = set(self._rows)

    def _stored(self, ask: Callable[[Store], Any]) -> Any:
        """Ask the file; where it fails memory takes its place, and a broken one is removed."""
        try:
            return ask(self._store)
        except (sqlite3.Error, zlib.error, ValueError, KeyError, TypeError) as error:
            path = self._store.path
            self._replace_store(None)
            if path is not None and not isinstance(error, sqlite3.OperationalError):
                remove(path)
            return None

    def _unpack(self, kept: Kept) -> Any:
        return self._stored(lambda _: unpack(kept))

    def _settled(self, number: int, run: str) -> Signature | None:
        row = self._rows.get(run)
        if row is None or row.entry is None or row.entry.state not in FINISHED:
            return None
        if run in self._stale or not row.signature:
            return None
        in_turn = self._thorough or not (number + self._looks) % TURNS
        return None if in_turn else row.signature

    def _is_new(self, run: str, signature: Signature) -> bool:
        row = self._rows.get(run)
        return row is None or row.signature != signature or run in self._stale

    def _forget(self, run: str) -> None:
        self._rows.pop(run, None)
        self._stale.discard(run)

    def _read_runs(
        self,
        changed: list[str],
        there: dict[str, Signature],
        until: float,
        gone: Iterable[str],
        progress: Progress | None,
    ) -> int:
        """Read runs until there is no time left, and return how many."""
        fresh: list[IndexRow] = []
        runs = self.root / RUNS
        for number, run in enumerate(changed, start=1):
            folder = runs / run
            outside = self.folder.leads_outside(folder)
            row = read_row(folder, there[run], "" if self.folder.outside else outside)
            if row.entry is not None:
                lines = self._lines.setdefault(str(row.entry.trivial), row.entry.trivial)
                row = row._replace(entry=self._timed(row.entry)._replace(trivial=lines))
            self._forget(run)
            self._rows[run] = row
            if not outside:
                fresh.append(row)
            if len(fresh) >= BATCH:
                self._put(fresh)
                fresh = []
            if progress is not None:
                progress(number, len(changed))
            if time.monotonic() > until:
                self._put(fresh, gone)
                return number
        if fresh or gone:
            self._put(fresh, gone)
        return len(changed)

    def _put(self, rows: list[IndexRow], gone: Iterable[str] = ()) -> None:
        self._stored(lambda store: store.put(rows, gone))
        for row in rows:  # the file has them now; memory keeps what a board shows
            self._rows[row.id] = row._replace(record=None, curve=None, probe=None)

    def _refusals(self) -> bool:
        """Note folders that are not read at all; say whether that is news."""
        stored = {name: self.folder.refused(name) for name in (RUNS, GRIDS, PROTOCOLS)}
        shown = {n: local_names(why, self.root) for n, why in stored.items() if why}
        now = {n: Broken(self.root / n, why) for n, why in shown.items()}
        before, self._broken = self._broken, now
        return now != before

    def _states(self, now: float, *, fresh: bool) -> dict[str, State]:
        """Describe how every run stands; the same object as before where nothing changed."""
        before = self._snapshot.states
        if not fresh:
            entries = self._snapshot.entries
            running = (run for run, each in entries.items() if each.state is State.RUNNING)
            if all(before[run] is entries[run].state_at(now) for run in running):
                return before  # type: ignore[return-value]
        return {
            run: row.entry.state_at(now)
            for run, row in sorted(self._rows.items())
            if row.entry is not None
        }

    def _draw(self, states: dict[str, State], unread: int) -> Snapshot:
        grids = self._grids.found
        rows = sorted(self._rows.items())
        broken = [Broken(Path(RUNS) / run, row.reason) for run, row in rows if row.entry is None]
        places: dict[str, tuple[str, str]] = {}
        for grid in grids.values():
            for cell in grid.cells:
                places.setdefault(cell.run, (grid.name, cell.variant))
        return Snapshot(
            entries={run: row.entry for run, row in rows if row.entry is not None},
            states=states,
            grids=grids,
            protocols=self._protocols.found,
            broken=(*self._broken.values(), *self._grids.broken, *self._protocols.broken, *broken),
            unread=unread,
            version=self._snapshot.version + 1,
            places=places,
        )

    def _timed(self, entry: RunEntry) -> RunEntry:
        """Estimate how long a run will still take, from its pace since it was first seen."""
        if entry.state is not State.RUNNING:
            self._first.pop(entry.id, None)
            return entry
        first = self._first.get(entry.id)
        if first is None or entry.update < first.update:
            first = self._first[entry.id] = entry
        made, took = entry.update - first.update, entry.heartbeat - first.heartbeat
        if made <= 0 or took <= 0:
            return entry
        return entry._replace(eta_seconds=(entry.updates - entry.update) * took / made)


def look_once(results: Path, progress: Progress | None = None, *, stored: bool = True) -> Index:
    """Return the index of a results folder after one whole look.

    Args:
        results: The results folder.
        progress: Called with how far the reading is.
        stored: Keep what was read in a file beside the runs.
    """
    index = Index(results, outside=True, stored=stored)
    index.look(math.inf, progress)
    return index
