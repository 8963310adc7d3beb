"""The grids of a results folder, each read again when its file changed."""

from __future__ import annotations

from pathlib import Path

from depthpde.files import local_names
from depthpde.records.index.folders import ResultsFolder, Signature
from depthpde.records.record import GRIDS, UNREADABLE, Broken, Grid, read_grid


class GridFiles:
    """The grids of one results folder.

    Args:
        folder: Where they lie.
    """

    def __init__(self, folder: ResultsFolder) -> None:
        self.folder = folder
        self._files: dict[str, tuple[Signature, Grid | Broken]] = {}

    def look(self) -> bool:
        """Read the grids that changed; say whether any did, came or went."""
        there = dict(self.folder.grids())
        known = {name: signature for name, (signature, _) in self._files.items()}
        self._files = {
            name: self._files[name] if known.get(name) == each else (each, self._read(name))
            for name, each in sorted(there.items())
        }
        return known != there

    @property
    def found(self) -> dict[str, Grid]:
        """Name → grid, sorted by file."""
        grids = (each for _, each in self._files.values() if isinstance(each, Grid))
        return {each.name: each for each in grids}

    @property
    def broken(self) -> list[Broken]:
        """What is no grid, and why."""
        return [each for _, each in self._files.values() if isinstance(each, Broken)]

    def _read(self, name: str) -> Grid | Broken:
        path = self.folder.root / GRIDS / name
        try:
            outside = self.folder.leads_outside(path)
            if outside and not self.folder.outside:
                raise ValueError(outside)
            return read_grid(path)
        except UNREADABLE as error:
            return Broken(Path(GRIDS) / name, local_names(str(error), self.folder.root))
