"""The grids or the protocols of a results folder, each read again when its file changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from depthpde.files import local_names
from depthpde.records.index.folders import ResultsFolder, Signature
from depthpde.records.record import UNREADABLE, Broken


class HasName(Protocol):
    """What a file holds, known by its own name."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


Content = TypeVar("Content", bound=HasName)


class NamedFiles(Generic[Content]):
    """The JSON files of one folder inside a results folder.

    Args:
        folder: The results folder.
        kind: The folder in it.
        read: Reads one file; raises what `UNREADABLE` lists where it cannot.
    """

    def __init__(self, folder: ResultsFolder, kind: str, read: Callable[[Path], Content]) -> None:
        self.folder, self.kind, self._read_file = folder, kind, read
        self._files: dict[str, tuple[Signature, Content | Broken]] = {}

    def look(self) -> bool:
        """Read the files that changed; say whether any did, came or went."""
        there = dict(self.folder.files(self.kind))
        known = {name: signature for name, (signature, _) in self._files.items()}
        self._files = {
            name: self._files[name] if known.get(name) == each else (each, self._read(name))
            for name, each in sorted(there.items())
        }
        return known != there

    @property
    def found(self) -> dict[str, Content]:
        """Name → what its file holds, sorted by file."""
        whole = (each for _, each in self._files.values() if not isinstance(each, Broken))
        return {each.name: each for each in whole}

    @property
    def broken(self) -> list[Broken]:
        """What cannot be read, and why."""
        return [each for _, each in self._files.values() if isinstance(each, Broken)]

    def _read(self, name: str) -> Content | Broken:
        path = self.folder.root / self.kind / name
        try:
            outside = self.folder.leads_outside(path)
            if outside and not self.folder.outside:
                raise ValueError(outside)
            return self._read_file(path)
        except UNREADABLE as error:
            return Broken(Path(self.kind) / name, local_names(str(error), self.folder.root))
