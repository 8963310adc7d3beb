"""What a grid's numbers cannot tell, from the numbers themselves."""

from __future__ import annotations

from statistics import median

from depthpde.pages.formatting import counted, format_number, format_size, signed
from depthpde.records.evidence import Evidence, in_mean, over_all, with_escapes
from depthpde.records.record import FINISHED
from depthpde.records.results import Results


def limits(results: Results, evidence: Evidence) -> list[str]:
    """Describe how far the numbers of a grid, and the files behind them, can be trusted.

    Args:
        results: What was read.
        evidence: The grid that leads the page.
    """
    found = [*_resolution(evidence), *_left_out(evidence), *_reach(evidence)]
    return [*found, *_gaps(results, evidence)]


def _resolution(evidence: Evidence) -> list[str]:
    """A difference is told apart from none where it is wider than the interval's half."""
    found = over_all(evidence)
    halves = [
        (each.interval.high - each.interval.low) / 2
        for each in found.values()
        if each.interval is not None
    ]
    if not halves:
        return ["No variant has enough paired runs for an interval: no difference can be judged."]
    least = min(each.n for each in found.values())
    half = format_number(median(halves))
    return [
        f"Differences below about {half} points: half the width of a typical 95 % interval, from "
        f"{counted(least, 'pair')} of runs a variant at least."
    ]


def _left_out(evidence: Evidence) -> list[str]:
    """A task in no mean may say the opposite of it: its number stands beside the headline."""
    inside = in_mean(evidence)
    outside = [task for task in evidence.tasks if task not in inside]
    whole = with_escapes(evidence).values()
    if not outside or not whole:
        return []
    names = " and ".join(outside)
    return [
        f"What {names} would do in the mean: learned at once or not yet, so a mean would count "
        f"escapes in points. With it the variants lie between {signed(min(whole))} and "
        f"{signed(max(whole))}."
    ]


def _reach(evidence: Evidence) -> list[str]:
    """Only what was trained is known."""
    runs = [run for cell in evidence.runs.values() for run in cell.values()]
    sizes = [int((run.result or {}).get("parameters") or 0) for run in runs]
    updates = [int((run.result or {}).get("update") or 0) for run in runs]
    if not any(sizes):
        return []
    tasks = ", ".join(evidence.tasks)
    return [
        f"Other tasks than {tasks}, or larger models: these have at most "
        f"{format_size(max(sizes))} parameters and {max(updates):,} updates."
    ]


def _gaps(results: Results, evidence: Evidence) -> list[str]:
    """What is missing, unread or cannot be checked."""
    found = []
    if evidence.missing:
        found.append(
            f"What the {counted(len(evidence.missing), 'run')} without a result will show."
        )
    finished = [each for each in results.entries.values() if each.state in FINISHED]
    before = sum(not each.checked for each in finished)
    if before:
        found.append(
            f"Whether {before:,} of {len(finished):,} finished runs (marked °) are as they were "
            "written: they were recorded before records had checksums."
        )
    if results.broken:
        found.append(f"What {counted(len(results.broken), 'file')} would say that cannot be read.")
    return found
