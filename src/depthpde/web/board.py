"""The sweep board: every grid as a table of variants by tasks, every run as a sign.

What ran last comes first, and tables are shown until there is enough on the page; the other grids
are a line each, which leads to their tables. The page is made of sections, each with a key; the
live stream sends the sections that changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from depthpde.pages.formatting import format_number, format_seconds, plain, short_tasks
from depthpde.records.index.entry import RunEntry, Snapshot
from depthpde.records.record import FINISHED, Cell, Grid, State
from depthpde.records.statistics.paired import mean
from depthpde.web.filters import BoardFilter
from depthpde.web.states import STATE_BADGES, StateBadge, run_name

MOST_SHOWN = 50
"""Problems of one kind, and running runs, that a page lists one by one."""
MOST_SIGNS = 600
"""Signs after which further grids are a line each."""
MOST_SEEDS = 24
"""Signs in one cell; of more runs those that have not finished, and counts of the others."""
MOST_ROWS = 60
"""Variants of a grid on one page."""
A_PAGE = 100
"""Runs of a list on one page."""
_URGENT = (State.RUNNING, State.FAILED, State.LOST, State.INTERRUPTED, State.PENDING)


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
    counts: tuple[tuple[StateBadge, int], ...] = ()
    """Of runs that have no sign of their own."""


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
    hidden: int
    """Variants that are not on this page."""


@dataclass(frozen=True, slots=True)
class GridLine:
    """One grid as a line."""

    key: str
    name: str
    question: str
    finished: int
    total: int
    counts: tuple[tuple[StateBadge, int], ...]
    """Of what has not simply been done."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run of a list."""

    run: str
    name: str
    look: StateBadge
    accuracy: str
    took: str
    unchecked: bool
    error: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The runs that a visitor asked for, a page of them."""

    runs: tuple[ListedRun, ...]
    total: int
    page: int
    pages: int


@dataclass(frozen=True, slots=True)
class RunningRow:
    """One run under way."""

    run: str
    name: str
    update: int
    updates: int
    left: str
    """How long it will still take, in words; empty where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardView:
    """All that the first page shows."""

    chosen: BoardFilter
    grids: tuple[str, ...]
    tasks: tuple[str, ...]
    counts: tuple[tuple[StateBadge, int], ...]
    total: int
    unread: int
    running: tuple[RunningRow, ...]
    panels: tuple[Panel, ...]
    lines: tuple[GridLine, ...]
    listing: Listing | None
    """Instead of tables, where single runs are asked for."""
    failures: tuple[tuple[str, str, str], ...]
    """Run, name and error of what failed."""
    broken: tuple[tuple[str, str], ...]
    """Path and reason of what could not be read."""
    folded: int = field(default=0)
    """Running runs beyond those that are listed."""

    @property
    def shown(self) -> int:
        """How many problems of one kind a page lists."""
        return MOST_SHOWN

    @property
    def not_shown(self) -> int:
        """How many more problems there are than a page lists."""
        return max(0, len(self.failures) - MOST_SHOWN) + max(0, len(self.broken) - MOST_SHOWN)


def draw_board(
    snapshot: Snapshot, grids: Mapping[str, Grid], chosen: BoardFilter | None = None
) -> BoardView:
    """Arrange what is known for the first page.

    Args:
        snapshot: What is known.
        grids: What is shown of it, as `Index.all_grids` has it.
        chosen: What the visitor asked for; all if not given.
    """
    chosen = chosen or BoardFilter()
    states = dict(snapshot.states)
    for grid in snapshot.grids.values():
        for cell in grid.cells:
            states.setdefault(cell.run, State.PENDING)
    count = Counter(states.values())
    ordered = _newest_first(grids, snapshot, states)
    wanted = [each for each in ordered if chosen.grid in ("", each.name)]
    panels, lines = ((), ()) if chosen.lists else _tables(wanted, snapshot, states, chosen)
    running = [run for run in snapshot.entries if states[run] is State.RUNNING]
    return BoardView(
        chosen=chosen,
        grids=tuple(grids),
        tasks=tuple(sorted({each.task for each in snapshot.entries.values()})),
        counts=_badges(count),
        total=len(states),
        unread=snapshot.unread,
        running=tuple(_running(snapshot, run) for run in running[:MOST_SHOWN]),
        folded=max(0, len(running) - MOST_SHOWN),
        panels=tuple(panels),
        lines=tuple(lines),
        listing=_list(wanted, snapshot, states, chosen) if chosen.lists else None,
        failures=tuple(
            (run, run_name(snapshot, run), entry.error)
            for run, entry in snapshot.entries.items()
            if states[run] is State.FAILED
        ),
        broken=tuple((str(each.path), each.reason) for each in snapshot.broken),
    )


def _newest_first(
    grids: Mapping[str, Grid], snapshot: Snapshot, states: Mapping[str, State]
) -> list[Grid]:
    """Order grids: those with running runs, then by when anything of them was last written."""
    entries = snapshot.entries

    def rank(grid: Grid) -> tuple[bool, float, str]:
        runs = [cell.run for cell in grid.cells]
        live = any(states.get(run) is State.RUNNING for run in runs)
        last = max((entries[run].changed for run in runs if run in entries), default=0.0)
        return (not live, -last, grid.name)

    return sorted(grids.values(), key=rank)


def _tables(
    grids: Sequence[Grid],
    snapshot: Snapshot,
    states: Mapping[str, State],
    chosen: BoardFilter,
) -> tuple[list[Panel], list[GridLine]]:
    """Show grids as tables while there is room, and the others as lines."""
    panels: list[Panel] = []
    lines: list[GridLine] = []
    signs = 0
    for number, grid in enumerate(grids, start=1):
        cells = [cell for cell in grid.cells if chosen.task in ("", cell.task)]
        if not cells:
            continue
        if panels and signs + len(cells) > MOST_SIGNS:
            lines.append(_line(number, grid, cells, states))
            continue
        signs += min(len(cells), MOST_SIGNS)
        panels.append(_panel(number, grid, cells, snapshot, states, chosen.page))
    return panels, lines


def _line(number: int, grid: Grid, cells: Sequence[Cell], states: Mapping[str, State]) -> GridLine:
    count = Counter(states[cell.run] for cell in cells)
    finished = sum(count[state] for state in FINISHED)
    rest: dict[State, int] = {s: n for s, n in count.items() if s is not State.DONE}
    return GridLine(f"line-{number}", grid.name, grid.question, finished, len(cells), _badges(rest))


def _badges(count: Mapping[State, int]) -> tuple[tuple[StateBadge, int], ...]:
    return tuple((STATE_BADGES[s], count[s]) for s in STATE_BADGES if count.get(s))


def _panel(
    number: int,
    grid: Grid,
    cells: Sequence[Cell],
    snapshot: Snapshot,
    states: Mapping[str, State],
    page: int,
) -> Panel:
    tasks = tuple(dict.fromkeys(cell.task for cell in cells))
    short = short_tasks(tasks)
    placed: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        placed.setdefault((cell.variant, cell.task), []).append(cell)
    variants = list(dict.fromkeys(cell.variant for cell in cells))
    first = MOST_ROWS * (page - 1)
    rows = tuple(
        Row(
            f"row-{number}-{place}",
            plain(variant),
            str(grid.variants.get(variant, {}).get("words", "")),
            tuple(_square(placed.get((variant, task), []), snapshot, states) for task in tasks),
        )
        for place, variant in enumerate(variants[first : first + MOST_ROWS], start=first)
    )
    shorts = tuple((short[task], task) for task in tasks)
    return Panel(grid.name, grid.question, shorts, rows, len(variants) - len(rows))


def _square(cells: list[Cell], snapshot: Snapshot, states: Mapping[str, State]) -> Square:
    entries = (snapshot.entries.get(cell.run) for cell in cells)
    known = [each.accuracy for each in entries if each is not None]
    reached = [each for each in known if each is not None]
    score = format_number(mean(reached)) if reached else ""
    ordered = sorted(cells, key=lambda each: (each.seed, each.run))
    if len(cells) <= MOST_SEEDS:
        return Square(score, tuple(_chip(each, snapshot, states) for each in ordered))
    urgent = [each for each in ordered if states[each.run] in _URGENT][:MOST_SEEDS]
    signed = {each.run for each in urgent}
    rest = Counter(states[each.run] for each in cells if each.run not in signed)
    return Square(score, tuple(_chip(each, snapshot, states) for each in urgent), _badges(rest))


def _chip(cell: Cell, snapshot: Snapshot, states: Mapping[str, State]) -> Chip:
    look, entry = STATE_BADGES[states[cell.run]], snapshot.entries.get(cell.run)
    words = f"seed {cell.seed}: {look.words}"
    if entry is not None and entry.accuracy is not None:
        words += f", {format_number(entry.accuracy)} %"
    return Chip(cell.run, look, words, entry is not None)


def _running(snapshot: Snapshot, run: str) -> RunningRow:
    entry = snapshot.entries[run]
    left = "" if entry.eta_seconds is None else format_seconds(entry.eta_seconds)
    return RunningRow(run, run_name(snapshot, run), entry.update, entry.updates, left)


def _list(
    grids: Iterable[Grid], snapshot: Snapshot, states: Mapping[str, State], chosen: BoardFilter
) -> Listing:
    """List the runs that a visitor asked for, by the order of the address."""
    runs = dict.fromkeys(cell.run for grid in grids for cell in grid.cells)
    words = chosen.q.lower().split()
    found = []
    for run in runs:
        entry = snapshot.entries.get(run)
        if entry is None or (chosen.state and states[run] != chosen.state):
            continue
        if chosen.task and entry.task != chosen.task:
            continue
        text = f"{run_name(snapshot, run)} {run} {entry.error}".lower() if words else ""
        if all(word in text for word in words):
            found.append(entry)
    found.sort(key=lambda entry: _rank(entry, states[entry.id], chosen.sort))
    pages = max(1, -(-len(found) // A_PAGE))
    page = min(max(1, chosen.page), pages)
    shown = found[A_PAGE * (page - 1) : A_PAGE * page]
    return Listing(
        tuple(_listed(entry, snapshot, states[entry.id]) for entry in shown),
        len(found), page, pages,
    )  # fmt: skip


def _rank(entry: RunEntry, state: State, sort: str) -> tuple[float, float, str]:
    if sort == "best":
        return (-1.0 if entry.accuracy is None else -entry.accuracy, 0.0, entry.id)
    first = float(state in FINISHED) if not sort else 0.0
    return (first, -entry.changed, entry.id)


def _listed(entry: RunEntry, snapshot: Snapshot, state: State) -> ListedRun:
    return ListedRun(
        entry.id,
        run_name(snapshot, entry.id),
        STATE_BADGES[state],
        "" if entry.accuracy is None else format_number(entry.accuracy, 2),
        "" if entry.seconds is None else format_seconds(entry.seconds),
        state in FINISHED and not entry.checked,
        entry.error,
    )
