"""The index as a SQLite file beside the runs: a cache that may vanish at any moment.

    RESULTS/.index/HOST.sqlite      one a machine: SQLite's shared memory does not cross a network

Whatever is wrong with it (missing, of another version, broken, locked, on a full or read-only
disk) means that it is made anew or done without, never that a page fails.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import sqlite3
import threading
import time
import weakref
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthpde import __version__
from depthpde.records.index.entry import RunEntry
from depthpde.records.index.folders import Signature
from depthpde.records.record import State

FOLDER = ".index"
FORMAT = f"2 depthpde {__version__}"
"""Another version may read records by other rules, so its rows are not trusted."""
FORGOTTEN_AFTER = 30 * 86400.0
"""Seconds after which the index of a machine that nobody used is removed."""
PATIENCE = 5.0
"""Seconds to wait for another writer, who holds the file for one batch at a time."""
KINDS = {
    "label": "TEXT", "task": "TEXT", "seed": "INTEGER", "state": "TEXT", "heartbeat": "REAL",
    "started": "REAL", "first": "INTEGER", "updates": "INTEGER", "accuracy": "REAL",
    "loss": "REAL", "targets": "INTEGER", "trivial": "TEXT", "seconds": "REAL",
    "error": "TEXT", "checked": "INTEGER", "digest": "TEXT",
    "changed": "REAL",
}  # fmt: skip
"""Columns that are fields of an entry; SQL has a word `update`, which is spelled `at_update`."""
COLUMNS = ("at_update", *KINDS)
SCHEMA = f"""
CREATE TABLE about (format TEXT NOT NULL);
CREATE TABLE runs (
  id TEXT PRIMARY KEY, signature TEXT NOT NULL, reason TEXT, parts TEXT,
  record BLOB, curve BLOB, probe BLOB, at_update INTEGER,
  {", ".join(f"{name} {kind}" for name, kind in KINDS.items())}
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """What the index keeps of one run."""

    id: str
    signature: Signature
    entry: RunEntry | None
    """None for a folder that is no record."""
    reason: str = ""
    """Why it is none."""
    parts: tuple[tuple[str, str], ...] = ()
    """Name and fault of files of a record that cannot be read."""
    record: bytes | None = None
    """JSON from which the whole record is made again; None while the run goes on."""
    curve: bytes | None = None
    """JSON of the updates and accuracies of its validations."""
    probe: bytes | None = None


def open_store(results: Path | None) -> Store:
    """Open the index of a results folder, made anew where it is none.

    Args:
        results: The results folder; None for an index in memory alone, which is also what a
            folder that cannot be written gets.
    """
    if results is None:
        return Store(None)
    folder = results / FOLDER
    path = folder / f"{_machine()}.sqlite"
    for _ in range(2):
        try:
            folder.mkdir(exist_ok=True)
            if not (folder / ".gitignore").exists():
                (folder / ".gitignore").write_text("*\n")
            _forget_others(path)
            return Store(path)
        except (OSError, sqlite3.OperationalError):
            break  # locked for long, no disk left, not ours to write
        except sqlite3.DatabaseError:
            remove(path)  # no database, or of another version: the second attempt makes it anew
    return Store(None)


def remove(path: Path) -> None:
    """Remove an index and SQLite's files beside it; whoever still reads it is not disturbed."""
    for end in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            path.with_name(path.name + end).unlink()


class Store:
    """The rows of one results folder.

    Args:
        path: The SQLite file; None for one in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection = _connect(path)
        weakref.finalize(self, self._connection.close)
        self._number = None if path is None else path.stat().st_ino

    @property
    def is_there(self) -> bool:
        """Whether the file on the disk still is the one that was opened."""
        try:
            return self.path is None or self.path.stat().st_ino == self._number
        except OSError:
            return False

    def read(self) -> list[IndexRow]:
        """Return every row, without records and probes."""
        names = ", ".join(COLUMNS)
        rows = self._ask(f"SELECT id, signature, reason, parts, {names} FROM runs")
        lines: dict[str, Mapping[str, float]] = {}
        return [_row(each, lines) for each in rows]

    def record(self, run: str, signature: Signature) -> Any:
        """Return the plain values of a run's record; None where they are of another signature."""
        return self._blob("record", run, signature)

    def curve(self, run: str, signature: Signature) -> Any:
        """Return the validations of a run; None where they are of another signature."""
        return self._blob("curve", run, signature)

    def probe(self, run: str, signature: Signature) -> Any:
        """Return the probe of a run; None where it is of another signature."""
        return self._blob("probe", run, signature)

    def put(self, rows: Sequence[IndexRow], gone: Iterable[str] = ()) -> None:
        """Write some rows and remove those of runs that are gone: all of it or nothing."""
        kept = ("id", "signature", "reason", "parts", "record", "curve", "probe", *COLUMNS)
        names, marks = ", ".join(kept), ", ".join("?" * len(kept))
        values = [_values(each) for each in rows]
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("DELETE FROM runs WHERE id = ?", [(e,) for e in gone])
            self._connection.executemany(
                f"INSERT OR REPLACE INTO runs ({names}) VALUES ({marks})", values
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _blob(self, column: str, run: str, signature: Signature) -> Any:
        rows = self._ask(
            f"SELECT {column} FROM runs WHERE id = ? AND signature = ?", run, signature
        )
        return json.loads(zlib.decompress(rows[0][0])) if rows and rows[0][0] else None

    def _ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()


def _connect(path: Path | None) -> sqlite3.Connection:
    """Open the file, with its tables where it is new; DatabaseError where it is another's."""
    connection = sqlite3.connect(
        path or ":memory:", timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for each in SCHEMA.strip().split(";\n"):
                    connection.execute(each)
                connection.execute("INSERT INTO about VALUES (?)", (FORMAT,))
        found = connection.execute("SELECT format FROM about").fetchall()
        connection.execute("SELECT * FROM runs LIMIT 1").fetchone()
    except sqlite3.Error as error:
        connection.close()
        if "no such" in str(error):  # another program's database, or one that was cut short
            raise sqlite3.DatabaseError(str(error)) from error
        raise
    if found != [(FORMAT,)]:
        connection.close()
        raise sqlite3.DatabaseError(f"the index must be of format {FORMAT}, got {found}")
    return connection


def _machine() -> str:
    """Name this machine by letters that every file system takes."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


def _forget_others(path: Path) -> None:
    """Remove what machines left that are gone, such as containers of one hour."""
    for other in path.parent.glob("*.sqlite"):
        if other != path and time.time() - other.stat().st_mtime > FORGOTTEN_AFTER:
            remove(other)


def _pack(text: bytes | None) -> bytes | None:
    return None if text is None else zlib.compress(text, 1)


def _values(row: IndexRow) -> tuple[Any, ...]:
    entry = row.entry
    columns: Sequence[Any] = [None] * len(COLUMNS)
    if entry is not None:
        fields = {name: getattr(entry, name) for name in KINDS}
        columns = (entry.update, *(fields | {"trivial": json.dumps(dict(entry.trivial))}).values())
    parts = json.dumps(row.parts) if row.parts else None
    head = (row.id, row.signature, row.reason or None, parts)
    return (*head, _pack(row.record), _pack(row.curve), _pack(row.probe), *columns)


def _row(found: tuple[Any, ...], lines: dict[str, Mapping[str, float]]) -> IndexRow:
    run, signature, reason, parts, *columns = found
    entry = None
    if reason is None:
        fields = dict(zip(("update", *KINDS), columns, strict=True), id=run)
        fields["state"], fields["checked"] = State(fields["state"]), bool(fields["checked"])
        if fields["trivial"] not in lines:
            lines[fields["trivial"]] = json.loads(fields["trivial"])
        fields["trivial"] = lines[fields["trivial"]]
        entry = RunEntry(**fields)
    told = tuple((str(name), str(why)) for name, why in json.loads(parts or "[]"))
    return IndexRow(run, signature, entry, reason or "", told)
