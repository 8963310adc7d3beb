"""How far the statistics of a report can be believed, measured by simulation.

    python benchmarks/inference.py            print the table
    python benchmarks/inference.py --check    and exit 1 if a bar is missed

Bars: intervals that are printed hold the truth in 93 to 97 %; a difference is shown in at most 5 %
of the cases in which there is none, and a difference of the margin is called equivalent in at most
5 % (7 % where the differences are skewed: each side of a skewed sample errs by itself). Each with
2.5 standard errors of the simulation. The seeds are fixed: the same code gives the same table.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from depthpde.records.record import read_grids, read_records
from depthpde.records.statistics.validation import (
    SHAPES,
    SPREADS,
    Shape,
    coverage,
    false_delays,
    false_equivalences,
    false_findings,
    resampled,
    shown_at_the_least,
    student_coverage,
)

RESULTS = Path(__file__).parents[1] / "results"
GRIDS = ("placement", "multiscale", "multiscale-positions", "positional", "ways")
AT_ONCE = "pathfinder-mini"
PAIRS = (3, 6, 8, 12)
SKEWED = 0.07
"""Bar of false equivalences where the differences are skewed."""


@dataclass(frozen=True)
class Cell:
    """One measured share, with its bars."""

    value: float | None
    low: float = 0.0
    high: float = 1.0
    draws: int = 1
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the share lies within its bars, as far as the simulation can tell."""
        if self.value is None:
            return True
        slack = 2.5 * (0.05 * 0.95 / self.draws) ** 0.5
        return self.low - slack <= self.value <= self.high + slack

    def __str__(self) -> str:
        if self.value is None:
            return self.note or "–"
        return f"{100 * self.value:.1f}" + ("" if self.passed else " MISSED")


def main() -> int:
    """Print the table; return 1 if a bar is missed and bars were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--draws", type=int, default=4000, help="samples a cell (default 4000)")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="records to take residuals of"
    )
    given = parser.parse_args()
    start = time.process_time()
    shapes = {name: each for name, each in SHAPES.items() if name != "plateau"}
    shapes["our records"] = resampled(residuals(given.results))
    passed = True
    for title, rows in tables(shapes, given.draws):
        print(f"\n{title}\n\n| differences | tasks |" + "".join(f" n = {n} |" for n in PAIRS))
        print("|---|---|" + "--:|" * len(PAIRS))
        for shape, tasks, cells in rows:
            print(f"| {shape} | {tasks} | " + " | ".join(map(str, cells)) + " |", flush=True)
            passed = passed and all(each.passed for each in cells)
    print(f"\n{time.process_time() - start:.0f} processor seconds; {'ok' if passed else 'MISSED'}")
    return 1 if given.check and not passed else 0


Row = tuple[str, str, list[Cell]]


def tables(shapes: Mapping[str, Shape], draws: int) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield each table's title and its rows, computed as they are printed."""
    yield "Coverage of 95 % intervals, in percent (93 to 97)", _coverage_rows(shapes, draws)
    yield "Differences shown where there are none, in percent (≤ 5)", _finding_rows(shapes, draws)
    yield (
        "A difference of the margin called equivalent, in percent (≤ 5)",
        _rows(
            shapes,
            lambda name, shape, spreads, n: Cell(
                false_equivalences(shape, spreads, n, draws=draws // 2),
                high=SKEWED if name == "skewed" else 0.05,
                draws=draws // 2,
            ),
        ),
    )
    few = max(1, draws // 20)
    yield (
        "The least difference, said to be shown with 80 %: shown, in percent (75 to 85)",
        _rows(
            {"normal": shapes["normal"], "our records": shapes["our records"]},
            lambda _, shape, spreads, n: Cell(
                shown_at_the_least(shape, spreads, n, draws=few),
                low=0.75,
                high=0.85,
                draws=few // 4,
            ),
        ),
    )


def residuals(results: Path) -> np.ndarray:
    """Return the paired differences of the committed runs minus their cell's mean, in spreads.

    Each cell of task and variant has its own mean; a task's residuals are divided by their common
    spread, so that the shape remains and the unit goes. Tasks learned at once are left out.
    """
    grids, records = read_grids(results), read_records(results).found
    by_task: dict[str, list[np.ndarray]] = {}
    for grid in (grids[name] for name in GRIDS):
        scores: dict[tuple[str, str], dict[int, float]] = {}
        for cell in grid.cells:
            accuracy = records[cell.run].accuracy
            if accuracy is not None and cell.task != AT_ONCE:
                scores.setdefault((cell.task, cell.variant), {})[cell.seed] = accuracy
        for (task, variant), runs in scores.items():
            base = scores.get((task, grid.baseline), {})
            d = np.array([runs[s] - base[s] for s in sorted(runs.keys() & base.keys())])
            if variant != grid.baseline and len(d) > 1:
                by_task.setdefault(task, []).append((d - d.mean()) * (len(d) / (len(d) - 1)) ** 0.5)
    pooled = [np.concatenate(each) for each in by_task.values()]
    return np.concatenate([each / each.std() for each in pooled])


def _rows(shapes, measure) -> Iterator[Row]:  # type: ignore[no-untyped-def]
    for name, shape in shapes.items():
        for tasks, spreads in SPREADS.items():
            yield name, tasks, [measure(name, shape, spreads, n) for n in PAIRS]


def _coverage_rows(shapes: Mapping[str, Shape], draws: int) -> Iterator[Row]:
    def measure(_: str, shape: Shape, spreads: tuple[float, ...], n: int) -> Cell:
        value = coverage(shape, spreads, n, draws=draws if n >= 6 else 1)
        would = "" if value is not None else _would(shape, spreads, n)
        return Cell(value, low=0.93, high=0.97, draws=draws, note=would)

    yield from _rows(shapes, measure)
    plateau = SHAPES["plateau"]
    yield (
        "plateau or escape",
        "one task",
        [Cell(None, note=_would(plateau, (1.0,), n)) for n in PAIRS],
    )


def _finding_rows(shapes: Mapping[str, Shape], draws: int) -> Iterator[Row]:
    def measure(_: str, shape: Shape, spreads: tuple[float, ...], n: int) -> Cell:
        return Cell(false_findings(shape, spreads, n, draws=draws), high=0.05, draws=draws)

    yield from _rows({**shapes, "plateau or escape": SHAPES["plateau"]}, measure)
    few = draws // 4
    yield (
        "escape times, log-rank",
        "one task",
        [Cell(false_delays(n, draws=few), high=0.05, draws=few) for n in PAIRS],
    )


def _would(shape: Shape, spreads: tuple[float, ...], n: int) -> str:
    return f"none (t: {100 * student_coverage(shape, spreads, n, draws=1000):.0f})"


if __name__ == "__main__":
    sys.exit(main())
