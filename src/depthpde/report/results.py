"""One or several results folders, read whole: records, grids, findings, and what is broken."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthpde.experiments.record import (
    GRIDS,
    Broken,
    Cell,
    Grid,
    Record,
    read_grid,
    read_records,
)

FINDINGS = "findings"
LOOSE = "runs"
"""Name of the grid of runs that no grid speaks of."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one claim."""

    claim: str
    finding: str
    verdict: str
    n: str
    interval: str
    p: str
    experiment: str
    """The file's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """All that the folders hold."""

    records: Mapping[str, Record]
    grids: Mapping[str, Grid]
    """By name; runs that no grid speaks of are one of their own."""
    findings: tuple[Finding, ...]
    broken: tuple[Broken, ...]
    """What could not be read, and why."""


def read_results(folders: Path | Sequence[Path]) -> Results:
    """Read results folders together; what is broken is told, never raised.

    A run that two folders hold is taken from the first that has its result. Grids of one name
    are joined.

    Args:
        folders: One folder or several.
    """
    places = [folders] if isinstance(folders, Path) else list(folders)
    records: dict[str, Record] = {}
    grids: dict[str, Grid] = {}
    findings: list[Finding] = []
    broken: list[Broken] = []
    for place in places:
        read = read_records(place)
        broken += read.broken
        for name, record in read.found.items():
            if name not in records or (records[name].result is None and record.result is not None):
                records[name] = record
        _add_grids(place, grids, broken)
        _add_findings(place, findings, broken)
    if not records and not broken and not grids:
        named = ", ".join(str(each) for each in places) or "no folder"
        raise FileNotFoundError(
            f"`RESULTS` must be a folder with runs, got {named} without any; make one with: "
            "depthpde demo, or depthpde sweep placement --scale mini --seeds 6"
        )
    loose = _loose(records, grids)
    return Results(
        records=dict(sorted(records.items())),
        grids=dict(sorted(grids.items())) | ({LOOSE: loose} if loose.cells else {}),
        findings=tuple(findings),
        broken=tuple(broken),
    )


def _add_grids(place: Path, grids: dict[str, Grid], broken: list[Broken]) -> None:
    for path in sorted((place / GRIDS).glob("*.json")):
        try:
            grid = read_grid(path)
        except (ValueError, OSError) as error:
            broken.append(Broken(path, str(error)))
            continue
        first = grids.get(grid.name)
        if first is not None:
            cells = tuple(dict.fromkeys(first.cells + grid.cells))
            variants = grid.variants | first.variants
            grid = Grid(first.name, first.question, first.baseline, cells, variants)
        grids[grid.name] = grid


def _loose(records: Mapping[str, Record], grids: Mapping[str, Grid]) -> Grid:
    """Make a grid of the runs that no grid speaks of, called by their own labels."""
    spoken = {cell.run for grid in grids.values() for cell in grid.cells}
    free = [each for name, each in sorted(records.items()) if name not in spoken]
    cells = sorted(
        (Cell(each.task, each.label, each.seed, each.id) for each in free),
        key=lambda cell: (cell.task, cell.variant != "baseline", cell.variant, cell.seed),
    )
    labels = dict.fromkeys(cell.variant for cell in cells)
    baseline = "baseline" if "baseline" in labels else next(iter(labels), "baseline")
    return Grid(LOOSE, "What did these runs reach?", baseline, tuple(cells), {})


def _add_findings(place: Path, findings: list[Finding], broken: list[Broken]) -> None:
    for path in sorted((place / FINDINGS).glob("*.json")):
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            rows = said["rows"] if isinstance(said, dict) else said
            findings += [_finding(row, path.stem) for row in rows]
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            broken.append(Broken(path, f"{path} must hold rows of claims, but {error!r}"))


def _finding(row: Mapping[str, Any], experiment: str) -> Finding:
    said = {key: "" if row.get(key) is None else row[key] for key in ("n", "interval", "p")}
    interval = said["interval"]
    if isinstance(interval, list) and len(interval) == 2:
        interval = f"[{float(interval[0]):+.1f}, {float(interval[1]):+.1f}]".replace("-", "−")
    p = f"{said['p']:.2g}" if isinstance(said["p"], float) else said["p"]
    texts = (row["claim"], row["finding"], row["verdict"], said["n"], interval, p)
    claim, finding, verdict, n, between, chance = (str(each) for each in texts)
    return Finding(claim, finding, verdict, n, between, chance, experiment)
