"""Prepared arrays on disk: raw little-endian columns and a manifest, written whole or not at all.

A prepared task is a folder with one file for each column (``train.tokens.u8``,
``train.offsets.i64``, ``train.labels.u8`` …) and ``manifest.json``. Everything is written into a
hidden sibling folder, flushed to the disk, and renamed: no reader ever sees half of it. What a
killed run left there is removed by the next one on the same machine.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from depthpde.data.source import digest
from depthpde.files import flush_folder

FORMAT = 1
MANIFEST = "manifest.json"
DOCUMENTS = "documents"
TYPES: dict[str, np.dtype[Any]] = {
    "u8": np.dtype("u1"),
    "u32": np.dtype("<u4"),
    "f32": np.dtype("<f4"),
    "i64": np.dtype("<i8"),
}
INPUTS = ("u8", "u32", "f32")
"""What the column of inputs may hold: bytes, larger symbols, real numbers."""

Array = npt.NDArray[Any]


class Column:
    """One growing file of numbers and its running checksum."""

    def __init__(self, folder: Path, name: str, kind: str) -> None:
        self.file = f"{name}.{kind}"
        self.kind = kind
        self.count = 0
        self._sha256 = hashlib.sha256()
        self._stream = (folder / self.file).open("wb")

    def append(self, values: Array) -> None:
        """Write numbers at the end."""
        raw = np.ascontiguousarray(values, dtype=TYPES[self.kind])
        self._stream.write(raw.data)
        self._sha256.update(raw.data)
        self.count += raw.size

    def close(self) -> dict[str, Any]:
        """Flush to the disk, and return the manifest's entry."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return {"count": self.count, "sha256": self._sha256.hexdigest(), "type": self.kind}

    def abandon(self) -> None:
        """Close without keeping anything."""
        with contextlib.suppress(OSError):
            self._stream.close()


class Writer:
    """Writes one prepared task; leaving the context by an error leaves nothing behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.partial = _hidden(folder, "partial")
        self.facts: dict[str, Any] = {}
        self.sources: list[dict[str, Any]] = []
        self._columns: dict[str, Column] = {}
        self._labels: dict[str, Array] = {}

    def __enter__(self) -> Self:
        for each in (self.partial, *_leftovers(self.folder)):
            shutil.rmtree(each, ignore_errors=True)
        self.partial.mkdir(parents=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for column in self._columns.values():
            column.abandon()
        shutil.rmtree(self.partial, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise OSError(
                error.errno,
                f"{error.strerror} while writing {self.folder}; nothing was kept: free some space "
                "or choose another folder with --out, then run the same command again",
            ) from error

    def append(
        self,
        split: str,
        tokens: Array,
        lengths: Array,
        labels: Array | None,
        *,
        channels: int = 1,
    ) -> None:
        """Write examples: their symbols or real numbers end to end, their lengths, their labels.

        Args:
            split: ``train``, ``validation``, ``test``, or ``documents`` for those of pairs.
            tokens: All symbols of all examples, end to end: bytes, uint32 or float32.
            lengths: Sites of each example.
            labels: One for each example; None for documents and language tasks.
            channels: Numbers at each site.
        """
        kind = next((each for each in INPUTS if TYPES[each] == tokens.dtype), "")
        assert kind, "symbols are bytes or uint32, real numbers float32"
        assert int(np.sum(lengths)) * channels == tokens.size, "lengths add up to the symbols"
        written = self._column(f"{split}.tokens", kind)
        offsets = self._column(f"{split}.offsets", "i64")
        if not offsets.count:
            offsets.append(np.zeros(1))
        offsets.append(written.count // channels + np.cumsum(lengths, dtype=np.int64))
        written.append(tokens)
        if labels is not None:
            self._append_labels(split, labels)

    def append_pairs(self, split: str, pairs: Array, labels: Array) -> None:
        """Write pairs [count, 2] of document numbers and their labels."""
        self._column(f"{split}.pairs", "u32").append(pairs)
        self._append_labels(split, labels)

    def add_source(self, path: Path, **facts: object) -> None:
        """Note a file that was read, by name, size and checksum."""
        entry: dict[str, Any] = {"name": path.name, **facts}
        if path.is_file():
            entry |= {"bytes": path.stat().st_size, "sha256": digest(path)}
        self.sources.append(entry)

    def finish(self, header: dict[str, Any]) -> Path:
        """Write the manifest, flush everything, and move it into place."""
        columns = {column.file: column.close() for column in self._columns.values()}
        manifest = {
            "format": FORMAT,
            **header,
            "sources": self.sources,
            "facts": self.facts,
            "splits": {split: self._summary(split) for split in self._split_names()},
            "columns": columns,
        }
        with (self.partial / MANIFEST).open("w", encoding="utf-8") as file:
            file.write(json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        flush_folder(self.partial)
        _replace(self.partial, self.folder)
        return self.folder

    def _column(self, name: str, kind: str) -> Column:
        if name not in self._columns:
            self._columns[name] = Column(self.partial, name, kind)
        return self._columns[name]

    def _append_labels(self, split: str, labels: Array) -> None:
        self._column(f"{split}.labels", "u8").append(labels)
        counts = np.bincount(labels, minlength=256)
        self._labels[split] = self._labels.get(split, np.zeros(256, np.int64)) + counts

    def _split_names(self) -> list[str]:
        return list(dict.fromkeys(name.split(".")[0] for name in self._columns))

    def _summary(self, split: str) -> dict[str, Any]:
        summary: dict[str, Any] = {}
        if f"{split}.tokens" in self._columns:
            summary["tokens"] = self._columns[f"{split}.tokens"].count
            summary["examples"] = self._columns[f"{split}.offsets"].count - 1
        if split in self._labels:
            counts = self._labels[split]
            total = int(counts.sum())
            summary["examples"] = total
            summary["label_shares"] = {
                str(label): round(int(counts[label]) / total, 6) for label in np.flatnonzero(counts)
            }
        return summary


def _replace(new: Path, place: Path) -> None:
    """Move a whole folder into place; an older one there is moved aside first, then removed."""
    old = _hidden(place, "old")
    if place.exists():
        os.rename(place, old)
    os.rename(new, place)
    flush_folder(place.parent)
    shutil.rmtree(old, ignore_errors=True)


def _hidden(folder: Path, kind: str) -> Path:
    """Return where this process keeps what is not the folder yet, or no more."""
    return folder.parent / f".{folder.name}.{kind}-{_host()}-{os.getpid()}"


def _leftovers(folder: Path) -> list[Path]:
    """Return what processes of this machine that have ended left beside a folder."""
    form = re.compile(rf"\.{re.escape(folder.name)}\.(?:partial|old)-{re.escape(_host())}-(\d+)")
    if not folder.parent.is_dir():
        return []
    found = ((each, form.fullmatch(each.name)) for each in folder.parent.iterdir())
    return [each for each, match in found if match is not None and not _alive(int(match[1]))]


def _host() -> str:
    return re.sub(r"\W", "_", socket.gethostname())


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
