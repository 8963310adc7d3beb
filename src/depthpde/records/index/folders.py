"""What lies in a results folder: its runs and grids, and whether any of their files changed.

    signature of a run = digest of (time, change time, size, number) of its folder and files

A finished run is looked at whole, one that goes on without its curve. A link that leads outside
is followed only where the reader says so: a dashboard never does.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from depthpde.records.probes import PROBE
from depthpde.records.record import (
    CONFIG,
    METRICS,
    PREDICTIONS,
    RESULT,
    RUNS,
    STATUS,
)

OPEN_FILES = (".", CONFIG, STATUS)
"""Of every run; the folder's own for files that come and go."""
FINISHED_FILES = (METRICS, PROBE, PREDICTIONS)
"""Of a run with a result, besides: what the index knows of them must still be true."""
_FILES = tuple(f"/{name}" for name in (RESULT, *OPEN_FILES, *FINISHED_FILES))
_GONE = (0, 0, 0, 0)
_NUMBERS = struct.Struct(f"={len(_GONE) * len(_FILES)}q")
OUTSIDE = "leads outside of the results folder, where the dashboard does not read"

Signature = str
"""Two looks of one signature saw the same files."""


class ResultsFolder:
    """The runs and grids of a results folder, as the file system tells them.

    Args:
        results: The results folder.
        outside: Follow links that lead outside of it; a server must not.
    """

    def __init__(self, results: Path, *, outside: bool) -> None:
        self.root, self.outside = results.resolve(), outside

    def runs(
        self, known: Callable[[int, str], Signature | None]
    ) -> Iterator[tuple[str, Signature]]:
        """Return the name and signature of every run.

        Args:
            known: Number and name → a signature that needs no new look; None for one that does.
        """
        for number, each in enumerate(self._scan(RUNS)):
            found = known(number, each.name)
            if found is not None:
                yield each.name, found
            elif each.is_symlink() or each.is_dir(follow_symlinks=False):
                yield each.name, run_signature(each.path)

    def files(self, kind: str) -> Iterator[tuple[str, Signature]]:
        """Return the name and signature of every JSON file in a folder inside it: grids, say."""
        for each in self._scan(kind):
            if each.name.endswith(".json"):
                yield each.name, _digest([_stat(each.path)])

    def contains(self, path: Path) -> bool:
        """Return whether a path truly lies inside the results folder, whatever links say."""
        try:
            return path.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):  # a link to itself
            return False

    def refused(self, name: str) -> str:
        """Return why the runs or the grids are not read at all; empty where they are."""
        place = self.root / name
        if self.outside or not place.is_dir() or self.contains(place):
            return ""
        return f"{place} {OUTSIDE}"

    def leads_outside(self, path: Path) -> str:
        """Name the first link of a run or grid that leads outside; empty where there is none."""
        if path.is_symlink() and not self.contains(path):
            return f"{path} {OUTSIDE}"
        try:
            with os.scandir(path) as found:
                links = [each.path for each in found if each.is_symlink()]
        except OSError:
            return ""  # a file, or gone a moment ago
        outside = (each for each in links if not self.contains(Path(each)))
        return next((f"{each} {OUTSIDE}" for each in outside), "")

    def _scan(self, name: str) -> Iterator[os.DirEntry[str]]:
        if not (self.root / name).is_dir() or self.refused(name):
            return
        with os.scandir(self.root / name) as found:
            yield from (each for each in found if not each.name.startswith("."))


def run_signature(folder: str) -> Signature:
    """Return what a run's files look like now."""
    result = _stat(folder + _FILES[0])
    names = _FILES[1:] if result is not _GONE else _FILES[1 : 1 + len(OPEN_FILES)]
    return _digest([result, *[_stat(folder + name) for name in names]])


def _stat(path: str) -> tuple[int, int, int, int]:
    try:
        found = os.lstat(path)
    except OSError:
        return _GONE
    number = found.st_ino & 0x7FFFFFFFFFFFFFFF
    number = -number if stat.S_ISLNK(found.st_mode) else number
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, number)


def _digest(files: list[tuple[int, int, int, int]]) -> Signature:
    files += [_GONE] * (len(_FILES) - len(files))
    return blake2b(_NUMBERS.pack(*chain(*files)), digest_size=12).hexdigest()
