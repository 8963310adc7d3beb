"""Escape times of recorded runs, on tasks that are learned at once or not yet."""

from __future__ import annotations

from collections.abc import Mapping

from depthpde.records.record import Grid, Record
from depthpde.records.statistics.survival import EscapeTime, escape_time

LEARNED_AT_ONCE: Mapping[str, float] = {"pathfinder-mini": 57.2, "pathfinder": 55.8, "pathx": 50.0}
"""Task → its plateau in percent: the distance of the marks, which a probe reads (docs/data.md).

A run is at the plateau or far above it. A mean over runs then counts escapes in points, and its
interval holds the truth in 71 to 92 % (benchmarks/inference.py): such a task stands in no mean.
"""


def escape_times(
    grid: Grid, records: Mapping[str, Record], task: str, line: float
) -> dict[str, dict[int, EscapeTime]]:
    """Return when each finished run of a task left its plateau, by its training curve.

        accuracy over the batches between two points; the test split is the last look

    Args:
        grid: Which runs.
        records: Run id → record.
        task: Such as one of `LEARNED_AT_ONCE`.
        line: The plateau, in percent.

    Returns:
        Variant → seed → time.
    """
    found: dict[str, dict[int, EscapeTime]] = {}
    for cell in grid.cells:
        record = records.get(cell.run)
        if cell.task != task or record is None or record.result is None:
            continue
        points = [(int(each["update"]), float(each["accuracy"])) for each in record.points()]
        if points:
            training = record.config["training"]
            examples = int(training["batch_size"]) * int(training["log_every"])
            found.setdefault(cell.variant, {})[cell.seed] = escape_time(
                points, line, examples=examples, final=record.accuracy
            )
    return found
