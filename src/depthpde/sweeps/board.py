"""The board: a grid as a table, live on a terminal or in a notebook, a line a change elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from depthpde.notebook import live_output
from depthpde.pages.formatting import format_seconds
from depthpde.records.index.index import Index
from depthpde.records.record import Grid, State
from depthpde.sweeps.status import CellStatus, cell_statuses, summary

if TYPE_CHECKING:
    from rich.live import Live

WIDTH = 8
"""Characters of one cell."""


def table(grid: Grid, cells: list[CellStatus], *, at_once: int = 0) -> str:
    """Return the whole board as text."""
    return "\n".join([headline(grid, cells, at_once=at_once), *_rows(grid, cells), *_errors(cells)])


def headline(grid: Grid, cells: list[CellStatus], *, at_once: int = 0) -> str:
    """Return the counts and the time left as one line."""
    found = summary(cells, at_once=at_once)
    others = {
        state: count for state, count in found["states"].items() if state not in ("done", "pending")
    }
    parts = [grid.name, f"{found['finished']} of {found['runs']} recorded"]
    parts += [f"{count} {state}" for state, count in others.items()]
    left = found["seconds_left"]
    if left:
        parts.append(f"about {format_seconds(left)} left")
    return " · ".join(parts)


def to_dict(grid: Grid, cells: list[CellStatus]) -> dict[str, Any]:
    """Return the board as plain JSON values."""
    plain = [asdict(each) | {"state": each.state.value} for each in cells]
    return {
        "name": grid.name, "question": grid.question, "baseline": grid.baseline,
        **summary(cells), "cells": plain,
    }  # fmt: skip


class TerminalBoard:
    """Shows a grid while it is computed: a table on a terminal, a line a change elsewhere.

    Args:
        grid: What is computed.
        results: The results folder.
        stream: Where to write; standard error unless given.
        every: Seconds between two looks at the folder.
    """

    def __init__(
        self, grid: Grid, results: Path, *, stream: TextIO | None = None, every: float = 1.0
    ) -> None:
        self.grid, self.results, self.every = grid, results, every
        self._index = Index(results, outside=True)
        self.stream = stream or sys.stderr
        self._live: Live | None = None
        self._show: Callable[[str], None] | None = None
        self._looked = 0.0
        self._at_once = 0
        self._told: dict[str, State] = {}

    def __enter__(self) -> Self:
        if self.stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self.stream), auto_refresh=False)
            self._live.start()
        elif self.stream is sys.stderr:
            self._show = live_output()
        self._told = {each.run: each.state for each in cell_statuses(self.grid, self._index)}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.look(at_once=True)
        if self._live is not None:
            self._live.stop()

    def look(self, *, at_once: bool = False) -> None:
        """Read the folder if it is time, and show what changed."""
        if not at_once and time.monotonic() - self._looked < self.every:
            return
        self._looked = time.monotonic()
        cells = cell_statuses(self.grid, self._index)
        running = {each.run for each in cells if each.state is State.RUNNING}
        self._at_once = max(self._at_once, len(running))
        if self._live is not None:
            from rich.text import Text

            shown = table(self.grid, cells, at_once=self._at_once)
            self._live.update(Text(shown), refresh=True)
            return
        if self._show is not None:
            self._show(table(self.grid, cells, at_once=self._at_once))
            return
        for each in {cell.run: cell for cell in cells}.values():
            if self._told.get(each.run) is not each.state:
                self._told[each.run] = each.state
                print(self._line(each, cells), file=self.stream, flush=True)

    def _line(self, each: CellStatus, cells: list[CellStatus]) -> str:
        parts = each.state.value + (f" {each.accuracy:.1f} %" if each.accuracy is not None else "")
        what = f"{each.task} · {each.variant} · seed {each.seed}: {parts}"
        head = headline(self.grid, cells, at_once=self._at_once)
        return f"{what}{': ' + each.error if each.error else ''} · {head}"


def _rows(grid: Grid, cells: list[CellStatus]) -> list[str]:
    tasks = list(dict.fromkeys(each.task for each in cells))
    variants = list(dict.fromkeys(each.variant for each in cells))
    seeds = sorted({each.seed for each in cells})
    found = {(each.task, each.variant, each.seed): each.mark for each in cells}
    width = max(len(each) for each in (*variants, *tasks)) + 1
    lines = []
    for task in tasks:
        heads = "".join(f"{f'seed {seed}':>{WIDTH + 1}}" for seed in seeds)
        lines.append(f"{task:{width}}{heads}")
        for variant in variants:
            marks = (found.get((task, variant, seed), "") for seed in seeds)
            row = "".join(f"{mark:>{WIDTH + 1}}" for mark in marks)
            if row.strip():
                lines.append(f"{variant:{width}}{row}")
    return lines


def _errors(cells: list[CellStatus]) -> list[str]:
    failed = {each.run: each for each in cells if each.state is State.FAILED}
    lines = [
        f"failed: {each.task} · {each.variant} · seed {each.seed}: {each.error}"
        for each in failed.values()
    ]
    more = [f"and {len(lines) - 5} more failed"] if len(lines) > 5 else []
    return lines[:5] + more
