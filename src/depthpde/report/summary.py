"""What was read, in one line."""

from __future__ import annotations

from depthpde.pages.formatting import counted
from depthpde.records.record import FINISHED
from depthpde.records.results import Results


def summarize_results(results: Results) -> str:
    """Count runs, those that grids still ask for too, tasks and seeds, and what is unread."""
    entries = results.entries.values()
    asked = {cell.run for grid in results.grids.values() for cell in grid.cells}
    finished = sum(each.state in FINISHED for each in entries)
    tasks = sorted({each.task for each in entries})
    seeds = {each.seed for each in entries}
    parts = [f"{finished} of {len(asked | results.entries.keys())} runs finished", ", ".join(tasks)]
    parts.append(counted(len(seeds), "seed"))
    if results.broken:
        parts.append(f"{len(results.broken)} unread")
    return " · ".join(each for each in parts if each)
