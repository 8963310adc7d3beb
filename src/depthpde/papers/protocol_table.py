"""What every experiment under a protocol has come to: one row each, from the records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from depthpde.papers.confirmatory.conclusion import (
    by_protocol,
    confirmatory,
    finished_seeds,
    left_out_tasks,
)
from depthpde.papers.experiment import Case, Experiment
from depthpde.papers.registry import EXPERIMENTS, experiment_of
from depthpde.records.evidence import Evidence, Missing
from depthpde.records.findings import Findings, JudgedClaim, rows_markdown
from depthpde.records.protocols.protocol import Look, StudyProtocol
from depthpde.records.protocols.steps import stage_of
from depthpde.sweeps.scale import Scale

NOT_YET = "not yet run"
HELD = "held back until the look"
"""The state of a finished run that stands in no comparison yet."""


def protocol_rows(
    grids: Iterable[Evidence],
    findings: Iterable[Findings],
    experiments: Mapping[str, Experiment] = EXPERIMENTS,
) -> list[dict[str, str]]:
    """Return a row for each experiment that fixed a protocol before its first run.

    Args:
        grids: What is recorded; tuning and gates are grids of their own.
        findings: What each experiment ended in so far.
        experiments: By name; those without a protocol are left out.
    """
    listed = list(grids)
    others = {  # somebody's own, under the name of an experiment
        each.name
        for each in listed
        if experiment_of(each, experiments) is not experiments.get(each.name)
    }
    recorded = {each.name: each for each in listed if _study_of(each.name) not in others}
    judged = {each.name: each for each in findings if each.name not in others}
    return [
        {
            "experiment": f"`{name}`",
            "question": each.question,
            "protocol": f"`{each.protocol.digest}`",
            "state": _state(each, recorded),
            "verdict": _verdict(each, recorded.get(name), judged.get(name)),
        }
        for name, each in experiments.items()
        if each.protocol is not None
    ]


def protocol_table(rows: Iterable[Mapping[str, str]]) -> str:
    """Write the rows as Markdown: a table of what has begun, a line for what has not.

    Args:
        rows: Of `protocol_rows`.
    """
    listed = list(rows)
    begun = [each for each in listed if each["state"] != NOT_YET]
    waiting = [
        f"{each['experiment']} ({each['protocol']})" for each in listed if each["state"] == NOT_YET
    ]
    parts = [rows_markdown(begun)] if begun else []
    if waiting:
        parts.append(f"Fixed, and {NOT_YET}: {', '.join(waiting)}.")
    return "\n\n".join(each.strip() for each in parts)


def awaited_look(
    grid: Evidence, experiments: Mapping[str, Experiment] = EXPERIMENTS
) -> StudyProtocol | None:
    """Return the protocol of a grid whose first look has not come: it must not be judged yet.

    None where a look has come, where nothing was run under a protocol, or where there is none. A
    part of a grid waits for the whole of it: choosing cells that are finished is no look.

    Args:
        grid: What is recorded.
        experiments: By name, for a grid that brings no protocol of its own.
    """
    protocol, look = _last_look(grid, experiments)
    return protocol if look is None else None


def at_last_look(grid: Evidence, experiments: Mapping[str, Experiment] = EXPERIMENTS) -> Evidence:
    """Return what of a grid may be compared now: its runs up to the last look of its protocol.

    Nothing before the first look, so that nobody stops, mends or goes on by a mean on its way; the
    runs held back count as missing. All of it where nothing was run under a protocol.

    Args:
        grid: What is recorded, or a part of it.
        experiments: By name, for a grid that brings no protocol of its own.
    """
    protocol, look = _last_look(grid, experiments)
    if protocol is None:
        return grid
    shown = set() if look is None else set(protocol.seeds_of(look))
    held = tuple(
        Missing(task, variant, seed, run.id, HELD)
        for (task, variant), runs in grid.runs.items()
        for seed, run in runs.items()
        if seed not in shown
    )
    if not held:
        return grid
    return replace(
        grid,
        runs={
            cell: kept
            for cell, runs in grid.runs.items()
            if (kept := {seed: run for seed, run in runs.items() if seed in shown})
        },
        missing=(*grid.missing, *held),
        whole=grid.whole or grid,
    )


def _last_look(
    grid: Evidence, experiments: Mapping[str, Experiment]
) -> tuple[StudyProtocol | None, Look | None]:
    """Return the protocol that runs of a grid were made under, and its last look that has come."""
    whole = grid.whole or grid
    protocol = _protocol(whole, experiments)
    if protocol is None:
        return None, None
    kept, _ = confirmatory(protocol, whole)
    if not any(kept.runs.values()):
        return None, None
    return protocol, protocol.look(finished_seeds(protocol, kept))


def tested_claims(grid: Evidence) -> tuple[JudgedClaim, ...]:
    """Return what a grid's protocol tested, in its order; none before a look or without one.

    Args:
        grid: What is recorded, whole.
    """
    protocol = _protocol(grid, EXPERIMENTS)
    if protocol is None:
        return ()
    kept, _ = confirmatory(protocol, grid)
    if protocol.look(finished_seeds(protocol, kept)) is None:
        return ()
    return tuple(by_protocol(protocol)(Case(scale="", evidence=grid)).claims)


def _protocol(grid: Evidence, experiments: Mapping[str, Experiment]) -> StudyProtocol | None:
    """Return what the grid brings, else what the experiment of its name fixed."""
    experiment = experiments.get(grid.name)
    return grid.protocol or (None if experiment is None else experiment.protocol)


def _study_of(grid: str) -> str:
    """Return the experiment of a grid or of one of its stages."""
    return (stage_of(grid) or (grid,))[0]


def _state(experiment: Experiment, recorded: Mapping[str, Evidence]) -> str:
    """Say how many runs of the first look are recorded under the protocol."""
    protocol = experiment.protocol
    assert protocol is not None, "only experiments under a protocol have a row"
    seeds = protocol.looks[0].seeds
    grid = recorded.get(experiment.name)
    tasks = tuple(experiment.tasks(Scale.MINI)) if grid is None else grid.tasks
    wanted = len(experiment.variants) * len(tasks) * seeds
    found = 0
    if grid is not None:
        kept, _ = confirmatory(protocol, grid)
        first = protocol.test_seeds[:seeds]
        found = sum(seed in first for runs in kept.runs.values() for seed in runs)
    if found:
        closed = "".join(f"; {task} below its gate" for task in left_out_tasks(protocol, tasks))
        return f"recorded {found} of {wanted}{closed}"
    begun = any(name.startswith(f"{experiment.name}.") for name in recorded)
    return f"tuning; recorded 0 of {wanted}" if begun else NOT_YET


def _verdict(experiment: Experiment, grid: Evidence | None, found: Findings | None) -> str:
    """Count the verdicts, in the order of the tests; nothing before a look."""
    if grid is not None and awaited_look(grid, {grid.name: experiment}) is not None:
        return "none before its first look"
    claims: Iterable[JudgedClaim] = () if found is None else found.claims
    counts = Counter(str(each.verdict) for each in claims)
    return ", ".join(f"{word} {count}" if count > 1 else word for word, count in counts.items())
