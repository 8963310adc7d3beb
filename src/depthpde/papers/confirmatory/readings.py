"""Test accuracy where the test split was read in another way, by the records alone.

Under noise, in a window, with blocks in another order, at another length or resolution: what each
run reached, and a table of every reading, whether a test names it or not. A run that broke counts
as the largest class in each of them, as it does in test accuracy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from depthpde.pages.formatting import plain, short_tasks
from depthpde.papers.extra_tables import Rows, difference_row
from depthpde.records.evidence import Evidence, broke, score, trivial
from depthpde.records.record import Record
from depthpde.records.scores import Scores, scores_of
from depthpde.records.statistics.paired import mean

NOISE = "corrupted"
TITLES = {
    NOISE: "test accuracy under noise, by its level",
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
        # Without a baseline run that is whole, the levels are those of the variants.
        levels = sorted(_levels(runs, NOISE) or _levels(_on(evidence, task), NOISE), key=float)
        if not levels or not runs:
            continue
        chance = trivial(evidence, task).get("majority", 0.0)
        half = chance + (_mean(map(score, runs)) - chance) / 2
        below = [each for each in levels if _mean(_at(run, NOISE, each) for run in runs) <= half]
        found[task] = below[0] if below else levels[-1]
    return found


def corrupted_scores(evidence: Evidence) -> Scores:
    """Return what every finished run reached at its task's level.

    Args:
        evidence: Finished runs whose test split was read under noise.
    """
    return _scores(evidence, NOISE, half_levels(evidence))


def reading_scores(evidence: Evidence, name: str, levels: Sequence[str]) -> Scores:
    """Return what every finished run reached when its test split was read in another way.

    Args:
        evidence: Finished runs.
        name: What the record calls the reading.
        levels: Which of them; on each task the first that a run of it holds.
    """
    chosen = {}
    for task in evidence.tasks:
        held = set().union(*(_read(run, name) for run in _on(evidence, task)))
        if known := [each for each in levels if each in held]:
            chosen[task] = known[0]
    return _scores(evidence, name, chosen)


def reading_tables(evidence: Evidence) -> dict[str, Rows]:
    """Return a table for every way of reading that runs have, title → rows by variant and task.

    Args:
        evidence: Finished runs.
    """
    tables = {title: _table(evidence, name) for name, title in TITLES.items()}
    return {title: rows for title, rows in tables.items() if rows}


def gain_table(evidence: Evidence, pair: tuple[str, str], names: Mapping[str, str]) -> Rows:
    """Split a gain by how the test split is read: as trained, then at every level of every reading.

    What is left of a difference in a small window, or with small blocks in another order, is local.

    Args:
        evidence: Finished runs.
        pair: The variant, and what it is compared with.
        names: What a record calls a reading → how a level of it is named, such as
            ``window of {}``; in their order, levels from the largest on.
    """
    short = short_tasks(evidence.tasks)
    runs = [each for found in evidence.runs.values() for each in found.values()]
    read: dict[str, Scores] = {"as trained": scores_of(evidence)}
    for name, words in names.items():
        for level in sorted(_levels(runs, name), key=_by_number, reverse=True):
            read[words.format(level)] = reading_scores(evidence, name, (level,))
    rows = {words: difference_row(scores, short, pair) for words, scores in read.items()}
    return [{"test split": words} | row for words, row in rows.items() if row]


def _table(evidence: Evidence, name: str) -> Rows:
    """Tell mean accuracies over seeds at every level that all runs of a cell have."""
    rows: Rows = []
    for variant in evidence.variants:
        for task in evidence.tasks:
            runs = list(evidence.runs.get((task, variant), {}).values())
            levels = sorted(_levels(runs, name), key=_by_number)
            if not levels:
                continue
            rows.append(
                {
                    "variant": plain(variant),
                    "task": short_tasks(evidence.tasks)[task],
                    "n": str(len(runs)),
                    "as trained": f"{_mean(map(score, runs)):.1f}",
                    "level: accuracy": " · ".join(
                        f"{level}: {_mean(_at(run, name, level) for run in runs):.1f}"
                        for level in levels
                    ),
                }
            )
    return rows


def _by_number(level: str) -> tuple[float, str]:
    number = level.rsplit("/", 1)[-1]
    return (float(number), level) if number.replace(".", "", 1).isdigit() else (0.0, level)


def _scores(evidence: Evidence, name: str, levels: Mapping[str, str]) -> Scores:
    """Return what every run reached at the level of its task."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for (task, variant), runs in evidence.runs.items():
        for seed, run in runs.items() if task in levels else ():
            if (reached := _at(run, name, levels[task])) is not None:
                found.setdefault(variant, {}).setdefault(task, {})[seed] = reached
    return found


def _at(run: Record, name: str, level: str) -> float | None:
    """Return what a run reached at a level; None where it was not read there."""
    if broke(run):
        return score(run)
    read = _read(run, name)
    return float(read[level]) if level in read else None


def _levels(runs: Sequence[Record], name: str) -> set[str]:
    """Return the levels at which all runs were read; one that broke counts at any."""
    read = [set(_read(run, name)) for run in runs if not broke(run)]
    return set.intersection(*read) if read else set()


def _read(run: Record, name: str) -> Mapping[str, float]:
    return (run.result or {}).get(name) or {}


def _on(evidence: Evidence, task: str) -> list[Record]:
    return [
        run for (each, _), runs in evidence.runs.items() if each == task for run in runs.values()
    ]


def _mean(values: Iterable[float | None]) -> float:
    return mean([each for each in values if each is not None])
