"""One or several results folders, read whole: records, grids, findings, and what is broken."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from depthpde.errors import import_optional
from depthpde.files import local_names, read_plain
from depthpde.records.findings import FINDINGS, Findings, read_findings
from depthpde.records.index.entry import RunEntry
from depthpde.records.index.index import Index, Progress, look_once
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.records.record import FINISHED, GRIDS, UNREADABLE, Broken, Grid, Record
from depthpde.records.ungrouped import UNGROUPED, UngroupedRun, settings_of, ungrouped_grid

SHOWN = ("run", "grid", "variant", "task", "seed", "state", "accuracy", "loss")
MOST_SHOWN = 20
"""Columns and rows that a notebook shows."""


class LazyRecords(Mapping[str, Record]):
    """Id → record, each made when it is first asked for.

    Args:
        homes: Id → the index that knows the run.
    """

    def __init__(self, homes: Mapping[str, Index]) -> None:
        self._homes, self._made = homes, dict[str, Record]()

    def __getitem__(self, run: str) -> Record:
        if run not in self._made:
            found = self._homes[run].record(run)
            if found is None:  # it was there when the folder was read
                raise KeyError(run)
            self._made[run] = found
        return self._made[run]

    def __contains__(self, run: object) -> bool:
        return run in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """All that the folders hold.

    >>> results = dp.read_results("results")
    >>> results.rows()[0]["state"]
    'done'
    >>> results.broken
    ()
    """

    records: Mapping[str, Record]
    """By id; each is made when it is first asked for."""
    entries: Mapping[str, RunEntry]
    """By id: the few numbers of a run that boards and tables need, all in memory."""
    grids: Mapping[str, Grid]
    """By name; runs that no grid speaks of are one of their own."""
    protocols: Mapping[str, StudyProtocol]
    """By name: what was laid down before the first run of the grid of that name."""
    findings: tuple[Findings, ...]
    """What experiments ended in, by the names of their files."""
    broken: tuple[Broken, ...]
    """What could not be read, by its path inside its folder, and why."""
    parts: tuple[Broken, ...] = ()
    """Curves and probes of readable records that cannot be read themselves, and why."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a run: what it is, how it stands, what it reached.

        ``grid`` and ``variant`` are those of the first grid that asks for the run, ``grids`` names
        them all.
        """
        places: dict[str, list[tuple[str, str]]] = {}
        for grid in self.grids.values():
            for cell in grid.cells:
                places.setdefault(cell.run, []).append((grid.name, cell.variant))
        rows, now = [], time.time()
        for run, each in self.entries.items():
            found = places.get(run) or [("", each.label)]
            rows.append(
                {
                    "run": run,
                    "grid": found[0][0],
                    "variant": found[0][1],
                    "task": each.task,
                    "seed": each.seed,
                    "state": each.state_at(now).value,
                    "accuracy": each.accuracy,
                    "loss": each.loss,
                    "seconds": each.seconds,
                    "update": each.update,
                    "updates": each.updates,
                    "checksums": each.checked,
                    "error": each.error,
                    "grids": " ".join(dict.fromkeys(name for name, _ in found)),
                }
            )
        return rows

    def to_pandas(self) -> Any:
        """Return the rows as a pandas.DataFrame; needs pandas."""
        return import_optional("pandas", "to_pandas()", "tables").DataFrame(self.rows())

    def to_polars(self) -> Any:
        """Return the rows as a polars.DataFrame; needs polars."""
        polars = import_optional("polars", "to_polars()", "tables")
        return polars.DataFrame(self.rows(), infer_schema_length=None)

    def _repr_html_(self) -> str:
        """Return the first runs as a table, for notebooks."""
        rows = self.rows()
        heads = "".join(f"<th>{name}</th>" for name in SHOWN)
        body = "".join(
            f"<tr>{''.join(f'<td>{_written(row[name])}</td>' for name in SHOWN)}</tr>"
            for row in rows[:MOST_SHOWN]
        )
        more = f", the first {MOST_SHOWN}" * (len(rows) > MOST_SHOWN)
        broken = f", {len(self.broken)} broken" * bool(self.broken)
        note = f"<p>{len(rows):,} runs{more}{broken}</p>"
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{note}"


def _written(value: Any) -> str:
    """Return a cell's text; names come from other people's files."""
    return (
        f"{value:.4g}" if isinstance(value, float) else escape(str("" if value is None else value))
    )


def read_results(
    folders: Path | str | Sequence[Path | str],
    *,
    stored: bool = True,
    progress: Progress | None = None,
) -> Results:
    """Read results folders together; what is broken is listed, never raised.

    A run that two folders hold is taken from the first that has its result. Grids of one name
    are joined; where they name different runs for one cell, the first folder's counts. What was
    read is kept beside the runs in ``.index``, so that the next reader looks only at what changed;
    the files stay the truth, and the index may be deleted at any time.

    >>> results = dp.read_results("results")
    >>> grid = results.grids["decoder-longer"]
    >>> len([row for row in results.rows() if row["grid"] == "decoder-longer"])
    21

    Args:
        folders: One folder or several.
        stored: Trust and keep the index; without, every file is read anew, as `verify` does.
        progress: Called with how many of the changed runs have been read, and of how many.
    """
    several = [folders] if isinstance(folders, Path | str) else list(folders)
    places = [Path(each) for each in several]
    for place in places:
        if not place.is_dir():
            raise FileNotFoundError(
                f"`RESULTS` must be folders with runs, got {place}, which is none; make one with: "
                "depthpde demo, or depthpde sweep placement --seeds 6"
            )
    entries: dict[str, RunEntry] = {}
    homes: dict[str, Index] = {}
    grids: dict[str, Grid] = {}
    protocols: dict[str, StudyProtocol] = {}
    findings: list[Findings] = []
    broken: list[Broken] = []
    parts: list[Broken] = []
    for place in places:
        index = look_once(place, progress, stored=stored)
        seen = index.snapshot
        for run, entry in seen.entries.items():
            first = entries.get(run)
            if first is None or (first.state not in FINISHED and entry.state in FINISHED):
                entries[run], homes[run] = entry, index
        unread = list(seen.broken)
        parts += index.unread_parts()
        _add_grids(seen.grids, grids, unread)
        protocols = dict(seen.protocols) | protocols  # the first folder's counts
        _add_findings(place, findings, unread)
        broken += unread
    if not entries and not broken and not grids:
        named = ", ".join(str(each) for each in places) or "no folder"
        raise FileNotFoundError(
            f"`RESULTS` must be a folder with runs, got {named} without any; make one with: "
            "depthpde demo, or depthpde sweep placement --scale mini --seeds 6"
        )
    records = LazyRecords(dict(sorted(homes.items())))
    loose = _loose(records, grids)
    return Results(
        records=records,
        entries=dict(sorted(entries.items())),
        grids=dict(sorted(grids.items())) | ({UNGROUPED: loose} if loose.cells else {}),
        protocols=protocols,
        findings=tuple(findings),
        broken=tuple(broken),
        parts=tuple(parts),
    )


def _add_grids(found: Mapping[str, Grid], grids: dict[str, Grid], broken: list[Broken]) -> None:
    for grid in found.values():
        first = grids.get(grid.name)
        if first is not None:
            grid, other = _joined(first, grid)
            if other:
                path = Path(GRIDS) / f"{grid.name}.json"
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
        for each in (records[run] for run in records if run not in spoken)
    )


def _add_findings(place: Path, findings: list[Findings], broken: list[Broken]) -> None:
    for path in sorted((place / FINDINGS).glob("*.json")):
        try:
            read_plain(path)  # a pipe or a file without end is refused before it is parsed
            findings.append(read_findings(path))
        except UNREADABLE as error:
            broken.append(Broken(path.relative_to(place), local_names(str(error), place)))
