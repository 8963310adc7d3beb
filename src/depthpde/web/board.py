"""The sweep board: every grid as a table of variants by tasks, every run as a sign.

The page is made of sections, each with a key; the live stream sends the sections that changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from depthpde.pages.formatting import format_number, format_seconds, plain, short_tasks
from depthpde.records.index.entry import Snapshot
from depthpde.records.record import Cell, Grid, State
from depthpde.records.statistics.paired import mean
from depthpde.web.states import STATE_BADGES, StateBadge, run_name

MOST_SHOWN = 50
"""Problems of one kind that a page lists one by one."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One run in a cell."""

    run: str
    look: StateBadge
    words: str
    known: bool
    """Whether there is a page about it."""


@dataclass(frozen=True, slots=True)
class Square:
    """One task of one variant."""

    mean: str
    """Mean test accuracy of its finished runs; empty without any."""
    chips: tuple[Chip, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One variant of a grid."""

    key: str
    variant: str
    words: str
    squares: tuple[Square, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One grid."""

    name: str
    question: str
    tasks: tuple[tuple[str, str], ...]
    """Short and whole name of each task."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class RunningRow:
    """One run under way."""

    run: str
    name: str
    update: int
    updates: int
    left: str
    """How long it will still take, in words; empty where nobody knows."""


@dataclass(frozen=True, slots=True)
class BoardView:
    """All that the first page shows."""

    counts: tuple[tuple[StateBadge, int], ...]
    total: int
    unread: int
    running: tuple[RunningRow, ...]
    panels: tuple[Panel, ...]
    failures: tuple[tuple[str, str, str], ...]
    """Run, name and error of what failed."""
    broken: tuple[tuple[str, str], ...]
    """Path and reason of what could not be read."""

    @property
    def shown(self) -> int:
        """How many problems of one kind a page lists."""
        return MOST_SHOWN

    @property
    def not_shown(self) -> int:
        """How many more problems there are than a page lists."""
        return max(0, len(self.failures) - MOST_SHOWN) + max(0, len(self.broken) - MOST_SHOWN)


def draw_board(snapshot: Snapshot, grids: Iterable[Grid]) -> BoardView:
    """Arrange what is known for the first page.

    Args:
        snapshot: What is known.
        grids: What is shown of it, as `Index.all_grids` has it.
    """
    states = dict(snapshot.states)
    planned = {cell.run for grid in snapshot.grids.values() for cell in grid.cells}
    for run in planned:
        states.setdefault(run, State.PENDING)
    count = Counter(states.values())
    return BoardView(
        counts=tuple((STATE_BADGES[state], count[state]) for state in STATE_BADGES if count[state]),
        total=len(states),
        unread=snapshot.unread,
        running=_running(snapshot, states),
        panels=_panels(grids, snapshot, states),
        failures=tuple(
            (run, run_name(snapshot, run), entry.error)
            for run, entry in snapshot.entries.items()
            if states[run] is State.FAILED
        ),
        broken=tuple((str(each.path), each.reason) for each in snapshot.broken),
    )


def _panels(
    grids: Iterable[Grid], snapshot: Snapshot, states: dict[str, State]
) -> tuple[Panel, ...]:
    return tuple(
        _panel(number, grid, snapshot, states) for number, grid in enumerate(grids, start=1)
    )


def _panel(number: int, grid: Grid, snapshot: Snapshot, states: dict[str, State]) -> Panel:
    tasks = tuple(dict.fromkeys(cell.task for cell in grid.cells))
    short = short_tasks(tasks)
    placed: dict[tuple[str, str], list[Cell]] = {}
    for cell in grid.cells:
        placed.setdefault((cell.variant, cell.task), []).append(cell)
    variants = dict.fromkeys(cell.variant for cell in grid.cells)
    rows = tuple(
        Row(
            f"row-{number}-{place}",
            plain(variant),
            str(grid.variants.get(variant, {}).get("words", "")),
            tuple(_square(placed.get((variant, task), []), snapshot, states) for task in tasks),
        )
        for place, variant in enumerate(variants)
    )
    shorts = tuple((short[task], task) for task in tasks)
    return Panel(grid.name, grid.question, shorts, rows)


def _square(cells: list[Cell], snapshot: Snapshot, states: dict[str, State]) -> Square:
    chips, reached = [], []
    for cell in sorted(cells, key=lambda each: (each.seed, each.run)):
        look, entry = STATE_BADGES[states[cell.run]], snapshot.entries.get(cell.run)
        words = f"seed {cell.seed}: {look.words}"
        if entry is not None and entry.accuracy is not None:
            reached.append(entry.accuracy)
            words += f", {format_number(entry.accuracy)} %"
        chips.append(Chip(cell.run, look, words, entry is not None))
    return Square(format_number(mean(reached)) if reached else "", tuple(chips))


def _running(snapshot: Snapshot, states: dict[str, State]) -> tuple[RunningRow, ...]:
    return tuple(
        RunningRow(
            run,
            run_name(snapshot, run),
            entry.update,
            entry.updates,
            "" if entry.eta_seconds is None else format_seconds(entry.eta_seconds),
        )
        for run, entry in snapshot.entries.items()
        if states[run] is State.RUNNING
    )
