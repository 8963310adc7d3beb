"""Lines that a task's manifest does not hold: what a linear model reads without any sequence model.

Measured on the prepared mini tasks by ``benchmarks/trivial_lines.py``; docs/data.md says how. A
model below such a line has not yet learned what needs no reading, whatever is placed in it.
"""

from __future__ import annotations

from collections.abc import Mapping

PROBES: Mapping[str, Mapping[str, float]] = {
    "text-mini": {"bag of bytes": 58.05},
    "retrieval-mini": {"byte counts of both": 74.95},
    "image-mini": {"grey-level counts": 17.15, "linear probe of the pixels": 30.75},
    "mnist-mini": {"linear probe of the pixels": 85.75},
    "newsgroups-mini": {"bag of bytes": 46.75},
    "pathfinder-mini": {"linear probe of the pixels": 56.25},
}
"""Task → name → test accuracy in percent."""
LARGEST_CLASS = ("majority", "commonest byte")
"""What the largest class is called among the trivial lines of a task."""


def largest_class(trivial: Mapping[str, float]) -> float | None:
    """Return what one label for all examples reaches, in percent; None where it is not known.

    Args:
        trivial: What needs no reading: name → percent.
    """
    return next((float(trivial[name]) for name in LARGEST_CLASS if name in trivial), None)


def with_probes(task: str, lines: Mapping[str, float]) -> dict[str, float]:
    """Return the trivial lines of a task, those of linear probes among them, lowest first.

    Args:
        task: Its name; a task without a measured probe keeps its lines.
        lines: Name → percent, as the manifest measured them.
    """
    found = {**lines, **PROBES.get(task, {})}
    return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def below(accuracy: float, lines: Mapping[str, float]) -> list[str]:
    """Name the lines that an accuracy does not reach, lowest first.

    Args:
        accuracy: In percent, such as the mean of the baseline.
        lines: Name → percent.
    """
    ordered = sorted(lines.items(), key=lambda item: item[1])
    return [name for name, line in ordered if accuracy < line]
