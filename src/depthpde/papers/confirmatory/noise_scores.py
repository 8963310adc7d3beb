"""Test accuracy where noise has taken half of what the baseline knows, by the records alone."""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.records.evidence import Evidence, score, trivial
from depthpde.records.record import Record
from depthpde.records.scores import Scores
from depthpde.records.statistics.paired import mean


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


def _levels(run: Record) -> set[str]:
    return set((run.result or {}).get("corrupted") or {})


def _at(run: Record, level: str) -> float:
    return float((run.result or {})["corrupted"][level])
