"""Thousands of honest run folders: the committed records again, under seeds of their own.

Every folder has all files of a record at their true sizes (curve, predictions, probe), a result
whose counts agree with its accuracy, and checksums as `execute` writes them. The grids stay those
of the committed results, with so many times the seeds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from depthpde.records.integrity.checksums import KEY, seal
from depthpde.records.probes import PROBE
from depthpde.records.record import (
    CONFIG,
    ENVIRONMENT,
    METRICS,
    PREDICTIONS,
    RESULT,
    STATUS,
    Cell,
    Grid,
    read_grids,
    read_records,
    run_folder,
    write_grid,
)

COMMITTED = Path(__file__).parents[1] / "results"
STRIDE = 1000
"""Between the seeds of two copies of a run."""
COPIED = (ENVIRONMENT, METRICS, PREDICTIONS, PROBE)


def write_runs(results: Path, runs: int, source: Path = COMMITTED) -> None:
    """Write so many runs, and the grids that ask for them.

    Args:
        results: Where to.
        runs: How many; copies of a run are written only when every run has one.
        source: Whose records are copied.
    """
    records = list(read_records(source).found.values())
    found = {
        (record.id, copy): write_copy(results, record.folder, copy)
        for copy in range(-(-runs // len(records)))
        for record in records[: runs - copy * len(records)]
    }
    copies = range(-(-runs // len(records)))
    for grid in read_grids(source).by_name.values():
        cells = tuple(
            Cell(cell.task, cell.variant, cell.seed + STRIDE * copy, found[cell.run, copy])
            for copy in copies
            for cell in grid.cells
            if (cell.run, copy) in found
        )
        write_grid(results, Grid(grid.name, grid.question, grid.baseline, cells, grid.variants))


def write_copy(results: Path, folder: Path, copy: int) -> str:
    """Write one run again under another seed, and return its id."""
    said = json.loads((folder / CONFIG).read_text())
    config = said["config"] | {"seed": said["config"]["seed"] + STRIDE * copy}
    run = sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]
    made = run_folder(results, run)
    made.mkdir(parents=True)
    for name in COPIED:
        if (folder / name).exists():
            (made / name).write_bytes((folder / name).read_bytes())
    _put(made / CONFIG, said | {"id": run, "config": config})
    _put(made / STATUS, json.loads((folder / STATUS).read_text()))
    result = json.loads((folder / RESULT).read_text())
    result.pop(KEY, None)
    moved = _moved(result, random.Random(run)) | {"id": run}
    _put(made / RESULT, seal(made, moved, (CONFIG, *COPIED)))
    return run


def _moved(result: Mapping[str, Any], by: random.Random) -> dict[str, Any]:
    """Move the test accuracy by about half a point, so that no two seeds are alike."""
    test = result.get("test")
    if not isinstance(test, Mapping) or "correct" not in test:
        return dict(result)
    targets = test["targets"]
    correct = min(targets, max(0, test["correct"] + round(by.gauss(0, 0.005 * targets))))
    counted = {"correct": correct, "accuracy": 100.0 * correct / targets}
    return {**result, "test": {**test, **counted}}


def _put(path: Path, values: object) -> None:
    path.write_text(json.dumps(values, indent=1))
