"""Runs that no grid speaks of, as a grid of their own.

A run is called by what is placed where. Where runs of one task differ in anything else, those that
differ from most of them say in what, so that no two settings ever share a cell:

    baseline                           baseline, learning_rate=0.0001
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from depthpde.records.record import Cell, Grid

UNGROUPED = "runs"
"""Name of the grid."""
BASELINE = "baseline"
_ASIDE = ("seed", "training.seed", "task")
"""What a cell tells by itself."""
_LABELLED = ("model.positions", "model.layer", "pretraining", "simulator")
"""What a label tells: it may differ between labels, but not between runs of one."""
_NOTHING = "null"


@dataclass(frozen=True, slots=True)
class UngroupedRun:
    """What a run is called by."""

    id: str
    task: str
    label: str
    seed: int
    settings: Mapping[str, str]
    """All that was set, the seed aside; see `settings_of`."""


def settings_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return every setting of a config by its dotted name, the seeds left out."""
    found: dict[str, str] = {}

    def walk(name: str, value: Any) -> None:
        if isinstance(value, Mapping) and value:
            for key, each in value.items():
                walk(f"{name}.{key}" if name else str(key), each)
        elif name not in _ASIDE:
            found[name] = value if isinstance(value, str) else json.dumps(value)

    walk("", config)
    return found


def ungrouped_grid(runs: Iterable[UngroupedRun]) -> Grid:
    """Make a grid of runs that no grid speaks of.

    Runs are compared only with a baseline of the same settings; where there is none the table
    shows what was reached, and no difference.
    """
    tasks: dict[str, list[UngroupedRun]] = defaultdict(list)
    for run in runs:
        tasks[run.task].append(run)
    cells = [
        Cell(run.task, label, run.seed, run.id)
        for group in tasks.values()
        for run, label in _called(group)
    ]
    cells.sort(key=lambda cell: (cell.task, cell.variant != BASELINE, cell.variant, cell.seed))
    return Grid(UNGROUPED, "What did these runs reach?", BASELINE, tuple(cells), {})


def _called(runs: list[UngroupedRun]) -> list[tuple[UngroupedRun, str]]:
    labelled: dict[str, list[UngroupedRun]] = defaultdict(list)
    for run in runs:
        labelled[run.label].append(run)
    names = sorted({name for run in runs for name in run.settings})
    own = {name for name in names if name.startswith(_LABELLED)}
    usual = {name: _usual(name, runs) for name in names if name not in own}
    of_label = {
        label: {name: _usual(name, group) for name in own} for label, group in labelled.items()
    }
    return [(run, _name(run, usual | of_label[run.label])) for run in runs]


def _name(run: UngroupedRun, usual: Mapping[str, str]) -> str:
    marks = [
        f"{name.rpartition('.')[2]}={run.settings.get(name, _NOTHING)}"
        for name, value in sorted(usual.items())
        if run.settings.get(name, _NOTHING) != value
    ]
    return ", ".join([run.label, *marks])


def _usual(name: str, runs: list[UngroupedRun]) -> str:
    """Return the commonest value of a setting; of several, the first in order of spelling."""
    counts = Counter(run.settings.get(name, _NOTHING) for run in runs)
    return min(counts, key=lambda value: (-counts[value], value))
