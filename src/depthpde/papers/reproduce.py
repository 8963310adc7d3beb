"""reproduce(experiment, folders) → Reproduction: compute what is missing, judge, write it down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from depthpde.papers.confirmatory.conclusion import own_experiment, stopped
from depthpde.papers.experiment import Case, Experiment, JudgedBy, Key, Log
from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.evidence import gather
from depthpde.records.findings import FINDINGS, OWN, Findings, check_scale, read_findings
from depthpde.records.protocols.sealing import check_sealed
from depthpde.records.protocols.steps import GateError
from depthpde.records.record import Record, is_recorded, read_record, read_records, run_folder
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.scale import Scale
from depthpde.sweeps.study import (
    choose_look,
    chosen_rates,
    compute_study,
    confirmation_plan,
    passed_plan,
    study_status,
    tuning_plan,
)
from depthpde.sweeps.study_tests import doubts_of

if TYPE_CHECKING:
    from depthpde.sweeps.executor import Folders
    from depthpde.sweeps.sweep import SweepOutcome

Compute = Callable[[Plan], "SweepOutcome"]
"""Computes what a plan lacks; `compute` of the sweeps, with an executor."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What an experiment ended in."""

    findings: Findings | None
    """None where it was interrupted, or runs failed or wait, before anything could be judged."""
    exit_code: int = 0
    """Of the command: 0, 1 where runs failed or wait, 130 where it was interrupted."""


def reproduce(
    experiment: Experiment,
    folders: Folders,
    *,
    scale: Scale = Scale.MINI,
    seeds: int | None = None,
    tasks: Sequence[str] | None = None,
    compute: Compute | None = None,
    log: Log = lambda line: None,
) -> Reproduction:
    """Compute the runs that an experiment lacks, judge its claims, and write the findings.

    Args:
        experiment: Which.
        folders: The results folder, whose records are not computed again; and the data.
        scale: How large; no choice under a protocol, but for a smoke run.
        seeds: How many; the experiment's own number unless given.
        tasks: Other tasks than the experiment's own.
        compute: How runs are computed; None trains nothing and judges what is recorded.
        log: Called with how it goes.
    """
    experiment.check_scale(scale)
    under = experiment.protocol is not None and scale is not Scale.QUICK
    older = [Scale.FULL.value] if under else []
    check_scale(folders.results, experiment.name, scale.value, older)
    if experiment.judged_by is JudgedBy.MACHINE:
        case = Case(scale=scale.value, rounds=seeds, log=log)
        return _judged(experiment, case, folders.results, 0)
    plan = experiment.plan(scale, seeds=seeds, tasks=tasks)
    if experiment.judged_by is JudgedBy.WEIGHTS:
        _check_whole(plan, folders.results)
    if plan.study is not None:
        return _under_protocol(experiment, plan, folders, scale.value, seeds, compute, log)
    if experiment.judged_by is JudgedBy.RECORDS and compute is None:
        _check_any(plan, folders.results)
    outcome = None if compute is None else compute(plan)
    if outcome is not None:
        _tell(outcome, log)
        if outcome.interrupted:
            return Reproduction(None, outcome.exit_code)
    code = 0 if outcome is None else outcome.exit_code
    if experiment.judged_by is JudgedBy.WEIGHTS:
        records = _all_records(plan, folders.results, outcome)
        case = Case(scale=scale.value, records=records, plan=plan, folders=folders, log=log)
    else:
        grid, found = plan.grid_in(folders.results), read_records(folders.results).found
        case = Case(scale=scale.value, evidence=gather(grid, found), log=log)
    return _judged(experiment, case, folders.results, code)


def reproduce_own(
    plan: Plan,
    folders: Folders,
    *,
    seeds: int | None = None,
    compute: Compute | None = None,
    log: Log = lambda line: None,
) -> Reproduction:
    """Compute what somebody's own grid under a protocol lacks, and judge its contrasts in order.

    Args:
        plan: Of a grid file, with the protocol as its `study`.
        folders: The results folder, whose records are not computed again; and the data.
        seeds: The number of one of the protocol's looks; the first look's for None.
        compute: How runs are computed; None trains nothing and judges what is recorded.
        log: Called with how it goes.
    """
    if plan.study is None:
        raise ValueError(
            f"{plan.name!r} must have a protocol to be judged, got none; name its tests under the "
            "key study, or compute it with depthpde sweep and compare all with depthpde report"
        )
    for doubt in doubts_of(plan):
        log(f"doubt: {doubt}")
    own = own_experiment(plan.study)
    # Before there was a scale of its own it was called mini; so is an experiment of that name.
    older = [] if own.name in EXPERIMENTS else [Scale.MINI.value]
    check_scale(folders.results, own.name, OWN, older)
    return _under_protocol(own, plan, folders, OWN, seeds, compute, log)


def _under_protocol(
    experiment: Experiment,
    plan: Plan,
    folders: Folders,
    scale: str,
    seeds: int | None,
    compute: Compute | None,
    log: Log,
) -> Reproduction:
    """Compute and judge by the experiment's protocol; a gate that fails is what it ends in."""
    protocol, results = plan.study, folders.results
    assert protocol is not None, "a plan under protocol"
    if compute is not None:
        with suppress(GateError):  # told below, from the records
            outcome = compute_study(plan, compute, results, seeds=seeds, log=log)
            _tell(outcome, log)
            if outcome.exit_code:
                return Reproduction(None, outcome.exit_code)
    else:
        check_sealed(results, protocol)
    status = study_status(plan, results)
    if status.stopped:
        found = experiment.findings(stopped(protocol, status.failed), scale)
        found.write(results)
        return Reproduction(found, 1)
    plan = passed_plan(plan, results)
    rates = chosen_rates(plan, results)
    look = choose_look(protocol, seeds)
    whole = confirmation_plan(plan, rates, look)
    _check_any(whole, results)
    if seeds is not None and status.finished < look.seeds:  # another look would answer in its place
        raise ValueError(
            f"{results} must hold {look.seeds} finished seeds of every cell for that look, got "
            f"{status.finished}; leave out --seeds to judge the look that is due, or compute the "
            "rest without --judge"
        )
    records = read_records(results).found
    evidence, tuning = (
        gather(each.grid_in(results), records) for each in (whole, tuning_plan(plan))
    )
    case = Case(scale=scale, evidence=evidence, tuning=tuning, log=log)
    return _judged(experiment, case, results, 0)


def stored_findings(experiment: Experiment, results: Path) -> Findings:
    """Return what an experiment ended in before: all that is kept of a machine's measurements."""
    path = results / FINDINGS / f"{experiment.name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} must hold what was measured; measure it without --judge")
    return read_findings(path)


def _tell(outcome: SweepOutcome, log: Log) -> None:
    """Log what was computed and what was not, and why."""
    log(f"{outcome.recorded} runs computed, {outcome.skipped} were recorded before")
    if outcome.failed:
        run, why = next(iter(outcome.failed.items()))
        log(f"{len(outcome.failed)} failed, the first, {run}, because: {why}")
    if outcome.waiting:
        log(f"{outcome.waiting} wait for their data")
    for why in outcome.left.values():
        log(f"left: {why}")


def _judged(experiment: Experiment, case: Case, results: Path, code: int) -> Reproduction:
    findings = experiment.judge(case)
    findings.write(results)
    return Reproduction(findings, code)


def _all_records(plan: Plan, results: Path, outcome: SweepOutcome | None) -> dict[Key, Record]:
    """Return every run of a plan; refuse to judge a part of them by their weights."""
    lacking = [each.id for each in plan.runs if not is_recorded(results, each.id)]
    if lacking:
        failed = {} if outcome is None else outcome.failed
        waiting = 0 if outcome is None else outcome.waiting
        why = f", the first failed because: {next(iter(failed.values()))}" if failed else ""
        why += f", {waiting} wait for their data" if waiting else ""
        advice = "mend the cause and go on" if why else "compute the rest without --judge, or"
        raise ValueError(
            f"{results} must hold all {len(plan.runs)} runs of {plan.name!r} at this scale and "
            f"number of seeds, got {len(plan.runs) - len(lacking)}{why}; {advice} with: "
            f"{plan.command}"
        )
    return {
        (cell.task, cell.variant, cell.seed): read_record(run_folder(results, cell.run))
        for cell, _ in plan.cells
    }


def _check_any(plan: Plan, results: Path) -> None:
    """Refuse to judge nothing."""
    if not any(is_recorded(results, each.id) for each in plan.runs):
        raise FileNotFoundError(
            f"{results} must hold runs of {plan.name!r} at this scale, got none; compute them "
            f"without --judge, or with: {plan.command}"
        )


def _check_whole(plan: Plan, results: Path) -> None:
    """Refuse to answer by a part of what is recorded: its findings would replace the whole's."""
    there = {cell.seed for cell in plan.grid_in(results).cells}
    asked = {cell.seed for cell, _ in plan.cells}
    if there - asked:
        raise ValueError(
            f"`seeds` must be no fewer than {results} holds for {plan.name!r}, {len(there)}, got "
            f"{len(asked)}; choose another folder with --out"
        )
