"""What a protocol asks of its plan, seen before anything is computed.

    check_tests(plan)    what it names is in the plan, and its runs can decide its tests, or refused
    doubts_of(plan)      what weakens it, in sentences: too few seeds, levels that spend too much

A test of a variant that is none, of a reading that no run makes or of a task that stands in no
mean would be found after all runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from depthpde.errors import check_name
from depthpde.pages.formatting import counted
from depthpde.records.escapes import LEARNED_AT_ONCE
from depthpde.records.evidence import SEEDS
from depthpde.records.protocols.endpoints import CORRUPTED, ENDPOINTS, ESCAPE, GATED, READINGS
from depthpde.records.protocols.protocol import Claimed, PlannedContrast, StudyProtocol
from depthpde.records.statistics.fixed_order import LEVEL
from depthpde.records.statistics.sequential import total_error
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.study import gate_plan, tuning_plan

if TYPE_CHECKING:
    from depthpde.runs.run import RunConfig

SETTINGS = {
    "corrupted": "corruption",
    "windowed": "windows",
    "shuffled": "shuffles",
    "transferred": "transfer",
}
"""What a record calls a further reading of the test split → the setting of a run that makes it."""
ROUNDED = 1.01
"""How far above 5 % the levels of all looks may come by rounding."""
SOME_LEVELS = ("0.05", "0.1", "0.2")
"""Levels of noise, as an example: any serve."""


def check_tests(plan: Plan) -> None:
    """Refuse a plan whose protocol names what it has not, or whose tests nothing could decide.

    The runs of all stages are described once, so that no setting is found wrong between them.

    Args:
        plan: Variants and bases, with the protocol as its `study`.
    """
    stages = [tuning_plan(plan)]
    protocol = plan.study
    assert protocol is not None, "refused by tuning_plan"
    _check_names(plan, protocol)
    if protocol.gates:
        stages.append(gate_plan(plan, {}))
    for stage in stages:
        list(stage.runs)  # each is checked as it is made
    runs = {(cell.task, cell.variant): run for cell, run in replace(plan, seeds=1).cells}
    for contrast in protocol.contrasts:
        _check_tasks(contrast, plan.bases)
        if contrast.endpoint != CORRUPTED and contrast.endpoint not in READINGS:
            continue
        compared = {contrast.variant, contrast.against, *(contrast.beyond or ())}
        noisy = contrast.endpoint == CORRUPTED
        if noisy:  # how much noise is told by the baseline, whether it is compared or not
            compared.add(plan.baseline)
        for (task, label), run in runs.items():
            if task in LEARNED_AT_ONCE or label not in compared:
                continue
            _check_reading(contrast.endpoint, label, run)
            if noisy:
                _check_levels(label, run, runs[task, plan.baseline])


def doubts_of(plan: Plan) -> list[str]:
    """Return what weakens the tests of a plan's protocol; nothing where they hold their level.

    Args:
        plan: Variants and bases, with the protocol as its `study`.
    """
    protocol = plan.study
    if protocol is None:
        return []
    looks, tasks = protocol.looks, [each for each in plan.bases if each not in LEARNED_AT_ONCE]
    found = []
    if looks[0].seeds < SEEDS:
        found.append(
            f"a look at {counted(looks[0].seeds, 'seed')} decides nothing: below {SEEDS} pairs on "
            "a task no interval keeps its coverage"
        )
    error = total_error([each.seeds for each in looks], [each.p for each in looks])
    if error > ROUNDED * LEVEL:
        given = ", ".join(f"{each.p:g}" for each in looks)
        found.append(f"looks at level {given} find something in {error:.1%} where there is nothing")
    # Escapes are compared on one task alone; every other test has the pairs of all the others.
    strata = {1 if each.endpoint == ESCAPE else len(tasks) for each in protocol.contrasts}
    for look in looks:
        for pairs in sorted(each * look.seeds for each in strata):
            least = 2.0 ** (1 - pairs)
            if pairs and least > look.p:
                found.append(
                    f"{pairs} pairs cannot reach level {look.p:g}: the smallest p that they have "
                    f"is {least:.2g}"
                )
    marks = [each for each in protocol.contrasts if each.claimed is Claimed.GREATER and each.margin]
    if marks and any(look.p != LEVEL for look in looks):
        found.append(
            "a mark beyond 0 is held to the 95 % interval at every look, whatever its level"
        )
    return found


def _check_names(plan: Plan, protocol: StudyProtocol) -> None:
    labels = [each.label for each in plan.variants]
    for endpoint in protocol.endpoints:
        check_name("study.endpoints", endpoint, ENDPOINTS)
    for gate in protocol.gates:
        check_name("study.gates.task", gate.task, plan.bases)
        check_name("study.gates.endpoint", gate.endpoint, GATED)
        if gate.least >= 100:
            raise ValueError(
                f"`study.gates.least` of {gate.task!r} must be below 100, got {gate.least:g}; it "
                "is an accuracy in percent, and the baseline must come above it"
            )
    for contrast in protocol.contrasts:
        for label in (contrast.variant, contrast.against, *(contrast.beyond or ())):
            check_name("study.contrasts", label, labels)


def _check_tasks(contrast: PlannedContrast, tasks: Iterable[str]) -> None:
    """Refuse escapes where nothing escapes, and a mean in which no task stands."""
    at_once = [each for each in tasks if each in LEARNED_AT_ONCE]
    if contrast.endpoint == ESCAPE and not at_once:
        raise ValueError(
            f"`study.contrasts` must not be of {ESCAPE!r} here, got {', '.join(tasks)}; only "
            f"{', '.join(sorted(LEARNED_AT_ONCE))} is learned at once or not yet"
        )
    if contrast.endpoint != ESCAPE and len(at_once) == len(list(tasks)):
        raise ValueError(
            f"`study.contrasts` must be of {ESCAPE!r} on {', '.join(at_once)} alone, got "
            f"{contrast.endpoint!r}; what is learned at once or not yet stands in no mean: name "
            "that endpoint, or add a task"
        )


def _check_reading(endpoint: str, label: str, run: RunConfig) -> None:
    """Refuse a test of a reading that a run does not make."""
    name, levels = READINGS.get(endpoint, ("corrupted", ()))
    setting = SETTINGS[name]
    asked = [str(each) for each in getattr(run, setting) or ()]
    read = [each for each in asked if _can_be_read(run, name, each)]
    if not (set(read) & set(levels) if levels else read):
        raise ValueError(
            f"`run.{setting}` of {label!r} must be set for {endpoint!r} on {run.task}, got "
            f"{', '.join(asked) or 'nothing'}; give every variant "
            f"run: {{{setting}: [{', '.join(levels or SOME_LEVELS)}]}}, and leave out tasks that "
            "cannot be read so"
        )


def _check_levels(label: str, run: RunConfig, baseline: RunConfig) -> None:
    """Refuse noise at other levels than the baseline's, one of which all runs are compared at."""
    asked = run.corruption or ()
    missing = [f"{each:g}" for each in baseline.corruption or () if each not in asked]
    if missing:
        raise ValueError(
            f"`run.corruption` of {label!r} must hold every level of the baseline's for "
            f"{CORRUPTED!r} on {run.task}, got {', '.join(f'{each:g}' for each in asked)} without "
            f"{', '.join(missing)}; give all variants the same levels"
        )


def _can_be_read(run: RunConfig, name: str, level: str) -> bool:
    """Return whether a task has such a reading: see `depthpde.runs.readings`."""
    from depthpde.data.lookup import find_task
    from depthpde.runs.readings import read_place

    if name == "transferred":
        return find_task(read_place(level)[0], None).family == run.about.family
    return True
