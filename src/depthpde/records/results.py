"""One or several results folders, read whole: records, grids, findings, and what is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from depthpde.files import read_plain
from depthpde.records.findings import FINDINGS, Findings, read_findings
from depthpde.records.record import (
    UNREADABLE,
    Broken,
    Grid,
    Record,
    read_grids,
    read_records,
)
from depthpde.records.ungrouped import UNGROUPED, UngroupedRun, settings_of, ungrouped_grid


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """All that the folders hold.

    >>> results = dp.read_results(Path("results"))
    >>> results.broken
    ()
    """

    records: Mapping[str, Record]
    grids: Mapping[str, Grid]
    """By name; runs that no grid speaks of are one of their own."""
    findings: tuple[Findings, ...]
    """What experiments ended in, by the names of their files."""
    broken: tuple[Broken, ...]
    """What could not be read, by its path inside its folder, and why."""


def read_results(folders: Path | Sequence[Path]) -> Results:
    """Read results folders together; what is broken is told, never raised.

    A run that two folders hold is taken from the first that has its result. Grids of one name
    are joined; where they name different runs for one cell, the first folder's counts.

    >>> results = dp.read_results(Path("results"))
    >>> grid = results.grids["decoder-longer"]

    Args:
        folders: One folder or several.
    """
    places = [folders] if isinstance(folders, Path) else list(folders)
    for place in places:
        if not place.is_dir():
            raise FileNotFoundError(
                f"`RESULTS` must be folders with runs, got {place}, which is none; make one with: "
                "depthpde demo, or depthpde sweep placement --seeds 6"
            )
    records: dict[str, Record] = {}
    grids: dict[str, Grid] = {}
    findings: list[Findings] = []
    broken: list[Broken] = []
    for place in places:
        read = read_records(place)
        unread = list(read.broken)
        for name, record in read.found.items():
            if name not in records or (records[name].result is None and record.result is not None):
                records[name] = record
        _add_grids(place, grids, unread)
        _add_findings(place, findings, unread)
        broken += [_local(each, place) for each in unread]
    if not records and not broken and not grids:
        named = ", ".join(str(each) for each in places) or "no folder"
        raise FileNotFoundError(
            f"`RESULTS` must be a folder with runs, got {named} without any; make one with: "
            "depthpde demo, or depthpde sweep placement --scale mini --seeds 6"
        )
    loose = _loose(records, grids)
    return Results(
        records=dict(sorted(records.items())),
        grids=dict(sorted(grids.items())) | ({UNGROUPED: loose} if loose.cells else {}),
        findings=tuple(findings),
        broken=tuple(broken),
    )


def _local(broken: Broken, place: Path) -> Broken:
    """Name a broken file from its results folder on: where that lies is nobody's business."""
    reason = broken.reason.replace(f"{place}/", "")
    return Broken(broken.path.relative_to(place), reason)


def _add_grids(place: Path, grids: dict[str, Grid], broken: list[Broken]) -> None:
    read = read_grids(place)
    broken += read.broken
    for path, grid in read.found.items():
        first = grids.get(grid.name)
        if first is not None:
            grid, other = _joined(first, grid)
            if other:
                reason = f"{path} names other runs for {other} cells of {grid.name}, which are "
                broken.append(Broken(path, f"{reason}left out: their settings differ"))
        grids[grid.name] = grid


def _joined(first: Grid, second: Grid) -> tuple[Grid, int]:
    """Join two grids of one name, and count the cells for which the second has other runs."""
    known = {(each.task, each.variant, each.seed): each.run for each in first.cells}
    new = [each for each in second.cells if (each.task, each.variant, each.seed) not in known]
    others = sum(
        known.get((each.task, each.variant, each.seed), each.run) != each.run
        for each in second.cells
    )
    variants = second.variants | first.variants
    cells = (*first.cells, *new)
    return Grid(first.name, first.question, first.baseline, cells, variants), others


def _loose(records: Mapping[str, Record], grids: Mapping[str, Grid]) -> Grid:
    """Make a grid of the runs that no grid speaks of."""
    spoken = {cell.run for grid in grids.values() for cell in grid.cells}
    return ungrouped_grid(
        UngroupedRun(each.id, each.task, each.label, each.seed, settings_of(each.config))
        for name, each in sorted(records.items())
        if name not in spoken
    )


def _add_findings(place: Path, findings: list[Findings], broken: list[Broken]) -> None:
    for path in sorted((place / FINDINGS).glob("*.json")):
        try:
            read_plain(path)  # a pipe or a file without end is refused before it is parsed
            findings.append(read_findings(path))
        except UNREADABLE as error:
            broken.append(Broken(path, str(error)))
