"""Test accuracy where the test split was read in another way, by the records alone.

Under noise, in a window, with blocks in another order, at another length or resolution: what each
run reached, and a table of every reading, whether a test names it or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.pages.formatting import plain, short_tasks
from depthpde.papers.extra_tables import Rows
from depthpde.records.evidence import Evidence, score, trivial
from depthpde.records.record import Record
from depthpde.records.scores import Scores
from depthpde.records.statistics.paired import mean

TITLES = {
    "corrupted": "test accuracy under noise, by its level",
    "windowed": "test accuracy with attention in a window, by sites either way",
    "shuffled": "test accuracy with blocks in another order, by symbols of a block",
    "transferred": "test accuracy at another length or resolution, untrained there",
}
"""What a record calls a reading → the title of its table."""


def half_levels(evidence: Evidence) -> dict[str, str]:
    """Return for each task the first level of noise that takes half of the baseline's knowledge.

        mean accuracy ≤ chance + (clean − chance) / 2;  the highest level where none does

    Args:
        evidence: Finished runs whose test split was read under noise.
    """
    found = {}
    for task in evidence.tasks:
        runs = list(evidence.runs.get((task, evidence.baseline), {}).values())
        levels = sorted(set.intersection(*map(_levels, runs)), key=float) if runs else []
        if not levels:
            continue
        chance = trivial(evidence, task).get("majority", 0.0)
        clean = mean([value for each in runs if (value := score(each)) is not None])
        half = chance + (clean - chance) / 2
        below = [each for each in levels if mean([_at(run, each) for run in runs]) <= half]
        found[task] = below[0] if below else levels[-1]
    return found


def corrupted_scores(evidence: Evidence) -> Scores:
    """Return what every finished run reached at its task's level.

    Args:
        evidence: Finished runs whose test split was read under noise.
    """
    levels = half_levels(evidence)
    found: dict[str, dict[str, dict[int, float]]] = {}
    for (task, variant), runs in evidence.runs.items():
        for seed, run in runs.items():
            if task in levels and levels[task] in _levels(run):
                found.setdefault(variant, {}).setdefault(task, {})[seed] = _at(run, levels[task])
    return found


def reading_scores(evidence: Evidence, name: str, levels: Sequence[str]) -> Scores:
    """Return what every finished run reached when its test split was read in another way.

    Args:
        evidence: Finished runs.
        name: What the record calls the reading.
        levels: Which of them; the first that a record holds.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    for (task, variant), runs in evidence.runs.items():
        for seed, run in runs.items():
            read = (run.result or {}).get(name) or {}
            for level in levels:
                if level in read:
                    found.setdefault(variant, {}).setdefault(task, {})[seed] = float(read[level])
                    break
    return found


def reading_tables(evidence: Evidence) -> dict[str, Rows]:
    """Return a table for every way of reading that runs have, title → rows by variant and task.

    Args:
        evidence: Finished runs.
    """
    tables = {title: _table(evidence, name) for name, title in TITLES.items()}
    return {title: rows for title, rows in tables.items() if rows}


def _table(evidence: Evidence, name: str) -> Rows:
    """Tell mean accuracies over seeds at every level that all runs of a cell have."""
    rows: Rows = []
    for variant in evidence.variants:
        for task in evidence.tasks:
            runs = list(evidence.runs.get((task, variant), {}).values())
            read = [(run.result or {}).get(name) or {} for run in runs]
            levels = sorted(set.intersection(*map(set, read)), key=_by_number) if read else []
            if not levels:
                continue
            usual = [value for each in runs if (value := score(each)) is not None]
            rows.append(
                {
                    "variant": plain(variant),
                    "task": short_tasks(evidence.tasks)[task],
                    "n": str(len(runs)),
                    "as trained": f"{mean(usual):.1f}",
                    "level: accuracy": " · ".join(
                        f"{level}: {mean([float(each[level]) for each in read]):.1f}"
                        for level in levels
                    ),
                }
            )
    return rows


def _by_number(level: str) -> tuple[float, str]:
    number = level.rsplit("/", 1)[-1]
    return (float(number), level) if number.replace(".", "", 1).isdigit() else (0.0, level)


def _levels(run: Record) -> set[str]:
    return set((run.result or {}).get("corrupted") or {})


def _at(run: Record, level: str) -> float:
    return float((run.result or {})["corrupted"][level])
