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
from pathlib import Path
from typing import Any, NamedTuple

from depthpde import __version__
from depthpde.records.index.entry import RunEntry
from depthpde.records.index.folders import Signature
from depthpde.records.record import State

FOLDER = ".index"
FORMAT = f"4 depthpde {__version__}"
"""Another version may read records by other rules, so its rows are not trusted."""
FORGOTTEN_AFTER = 30 * 86400.0
"""Seconds after which the index of a machine that nobody used is removed."""
PATIENCE = 5.0
"""Seconds to wait for another writer, who holds the file for one batch at a time."""
WORTH_PACKING = 256
"""Bytes from which on a file is compressed; SQLite knows which are, by their type."""
KINDS = {
    "label": "TEXT", "task": "TEXT", "seed": "INTEGER", "state": "TEXT", "heartbeat": "REAL",
    "started": "REAL", "first": "INTEGER", "update": "INTEGER", "updates": "INTEGER",
    "accuracy": "REAL", "loss": "REAL", "targets": "INTEGER", "trivial": "TEXT",
    "seconds": "REAL", "error": "TEXT", "checked": "INTEGER", "digest": "TEXT", "changed": "REAL",
}  # fmt: skip
"""Columns that are the fields of an entry, in their order, after its id."""
COLUMNS = ", ".join(f'"{name}"' for name in KINDS)
STATES = {each.value: each for each in State}
SCHEMA = f"""
CREATE TABLE about (format TEXT NOT NULL);
CREATE TABLE runs (
  id TEXT PRIMARY KEY, signature TEXT NOT NULL, reason TEXT, parts TEXT,
  {", ".join(f'"{name}" {kind}' for name, kind in KINDS.items())}
) WITHOUT ROWID;
CREATE TABLE files (
  id TEXT PRIMARY KEY, signature TEXT NOT NULL, record BLOB, curve BLOB, probe BLOB
);
"""
"""What all boards read at their start stands apart from what is read of one run at a time."""


class IndexRow(NamedTuple):
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


Kept = bytes | str | None
"""A file as the index keeps it: compressed, or a text where it is small."""


def unpack(kept: Kept) -> Any:
    """Return the plain values of what `Store.files` returned; None of nothing."""
    if kept is None:
        return None
    return json.loads(kept if isinstance(kept, str) else zlib.decompress(kept))


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
        rows = self._ask(f"SELECT id, signature, reason, parts, {COLUMNS} FROM runs")
        lines: dict[str, Mapping[str, float]] = {}
        return [_row(each, lines) for each in rows]

    def files(self, run: str, signature: Signature) -> Sequence[Kept]:
        """Return what is kept of a run's record, curve and probe, for `unpack`; one question."""
        rows = self._ask(
            "SELECT record, curve, probe FROM files WHERE id = ? AND signature = ?", run, signature
        )
        return rows[0] if rows else (None, None, None)

    def curve(self, run: str, signature: Signature) -> Any:
        """Return the validations of a run; None where they are of another signature."""
        return self._blob("curve", run, signature)

    def probe(self, run: str, signature: Signature) -> Any:
        """Return the probe of a run; None where it is of another signature."""
        return self._blob("probe", run, signature)

    def put(self, rows: Sequence[IndexRow], gone: Iterable[str] = ()) -> None:
        """Write some rows and remove those of runs that are gone: all of it or nothing."""
        names = f"id, signature, reason, parts, {COLUMNS}"
        marks = ", ".join("?" * (4 + len(KINDS)))
        values, files = [_values(each) for each in rows], [_files(each) for each in rows]
        old = [(each,) for each in gone]
        with self._lock, self._connection:
            write = self._connection.executemany
            self._connection.execute("BEGIN IMMEDIATE")
            for table in ("runs", "files"):
                write(f"DELETE FROM {table} WHERE id = ?", old)
            write(f"INSERT OR REPLACE INTO runs ({names}) VALUES ({marks})", values)
            write("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", files)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _blob(self, column: str, run: str, signature: Signature) -> Any:
        rows = self._ask(
            f"SELECT {column} FROM files WHERE id = ? AND signature = ?", run, signature
        )
        return unpack(rows[0][0] if rows else None)

    def _ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()


def _connect(path: Path | None) -> sqlite3.Connection:
    """Open the file, with its tables where it is new; DatabaseError where it is another's."""
    connection = sqlite3.connect(
        path or ":memory:", timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        # A run's row fits on a page of this size; on the usual ones it is a chain of four.
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for each in SCHEMA.strip().split(";\n"):
                    connection.execute(each)
                connection.execute("INSERT INTO about VALUES (?)", (FORMAT,))
        found = connection.execute("SELECT format FROM about").fetchall()
        for table in ("runs", "files"):
            connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
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


def _pack(text: bytes | None) -> bytes | str | None:
    if text is None:
        return None
    if len(text) < WORTH_PACKING and text.isascii():
        return text.decode("ascii")
    # A window of 8 KB: files are small, and clearing the usual one takes longer than they do.
    pack = zlib.compressobj(1, zlib.DEFLATED, 13, 7)
    return pack.compress(text) + pack.flush()


def _values(row: IndexRow) -> tuple[Any, ...]:
    entry = row.entry
    columns: Sequence[Any] = [None] * len(KINDS)
    if entry is not None:
        plain = entry._replace(trivial=json.dumps(dict(entry.trivial)))  # type: ignore[arg-type]
        columns = plain[1 : 1 + len(KINDS)]
    parts = json.dumps(row.parts) if row.parts else None
    return (row.id, row.signature, row.reason or None, parts, *columns)


def _files(row: IndexRow) -> tuple[Any, ...]:
    return (row.id, row.signature, _pack(row.record), _pack(row.curve), _pack(row.probe))


_STATE, _CHECKED, _TRIVIAL = (list(KINDS).index(each) for each in ("state", "checked", "trivial"))


def _row(found: tuple[Any, ...], lines: dict[str, Mapping[str, float]]) -> IndexRow:
    run, signature, reason, parts, *columns = found
    entry = None
    if reason is None:
        columns[_STATE] = STATES[columns[_STATE]]
        columns[_CHECKED] = bool(columns[_CHECKED])
        if (text := columns[_TRIVIAL]) not in lines:
            lines[text] = json.loads(text)
        columns[_TRIVIAL] = lines[text]
        entry = RunEntry(run, *columns)
    problems = tuple((str(name), str(why)) for name, why in json.loads(parts)) if parts else ()
    return IndexRow(run, signature, entry, reason or "", problems)
