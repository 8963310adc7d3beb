"""What was read, in one line."""

from __future__ import annotations

from depthpde.pages.formatting import counted
from depthpde.records.record import FINISHED
from depthpde.records.results import Results


def summarize_results(results: Results) -> str:
    """Count runs, tasks and seeds, and what could not be read."""
    entries = results.entries.values()
    finished = sum(each.state in FINISHED for each in entries)
    tasks = sorted({each.task for each in entries})
    seeds = {each.seed for each in entries}
    parts = [f"{finished} of {len(entries)} runs finished", ", ".join(tasks)]
    parts.append(counted(len(seeds), "seed"))
    if results.broken:
        parts.append(f"{len(results.broken)} unread")
    return " · ".join(each for each in parts if each)
