"""A plan under a protocol, stage by stage; every stage follows from the records before it.

tuning of the baseline → its gates → tuning of the variants → test seeds up to a look

RESULTS/grids/NAME.tuning.json    rates × tuning seeds
RESULTS/grids/NAME.gates.json     the baseline at its chosen rate, on the first tuning seed
RESULTS/grids/NAME.json           test seeds, each variant at its own rate
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from depthpde.records.protocols.endpoints import GATED
from depthpde.records.protocols.protocol import Look, StudyProtocol
from depthpde.records.protocols.sealing import seal
from depthpde.records.protocols.steps import (
    GATES,
    TUNING,
    GateResult,
    choose_rate,
    failed_gates,
    gate_results,
    pass_gates,
    rate_label,
    stage_grid,
    stops,
)
from depthpde.records.record import FINISHED, RESULT, Record, State, read_record, run_folder
from depthpde.sweeps.grid import Plan, Variant

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset
    from depthpde.sweeps.sweep import SweepOutcome

Rates = Mapping[tuple[str, str], float]
"""(Task, variant) → learning rate."""
CHOSEN = ("learning_rate", "updates")
"""Settings that a variant of a study leaves to its protocol and its bases."""


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """How far a study is, by its records alone."""

    rates: Rates
    """Chosen so far."""
    gates: tuple[GateResult, ...]
    tuned: tuple[int, int]
    """Finished and planned runs that choose rates."""
    finished: int
    """Test seeds that are finished in every cell; 0 before all rates are chosen."""
    look: Look | None
    """The last look that is due; None before the first."""

    stopped: bool
    """Whether gates that failed ended it."""

    @property
    def failed(self) -> tuple[GateResult, ...]:
        """Gates that did not open."""
        return failed_gates(self.gates)


def compute_study(
    plan: Plan,
    compute: Callable[[Plan], SweepOutcome],
    results: Path,
    *,
    seeds: int | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> SweepOutcome:
    """Compute what a study lacks, stage by stage; the same call goes on where it stood.

    The protocol is laid down before the first run; a changed one is refused. A gate that fails
    raises `GateError`: that is the result, and no variant was run.

    Args:
        plan: Variants and bases, with the protocol as its `study`.
        compute: Computes one stage; `depthpde.compute` with an executor of its own each time.
        results: The results folder.
        seeds: Test seeds: the number of one of the protocol's looks; the first look's for None.
        log: Called with every stage, the rates chosen and the gates.
    """
    from depthpde.sweeps.sweep import SweepOutcome

    protocol = _protocol(plan)
    look = choose_look(protocol, seeds)
    tuning_plan(plan)  # a variant that it refuses is refused before the baseline's runs
    seal(results, protocol)
    whole = SweepOutcome()
    done: set[str] = set()
    for stage in _stages(plan, results, look, log):
        log(f"{stage.name}: {len(stage.runs)} runs under protocol {protocol.digest}")
        ended = compute(stage)
        runs = {each.id for each in stage.runs}
        whole.recorded += ended.recorded
        # The baseline's tuning runs are part of the next tuning stage: they are counted once.
        whole.skipped += max(0, ended.skipped - len(runs & done))
        done |= runs
        whole.failed |= ended.failed
        whole.waiting += ended.waiting
        whole.left |= ended.left
        whole.interrupted = ended.interrupted
        if ended.exit_code:  # the next stage needs all of this one
            break
    return whole


def _stages(plan: Plan, results: Path, look: Look, log: Callable[[str], None]) -> Iterator[Plan]:
    yield tuning_plan(plan, [plan.baseline])
    protocol = _protocol(plan)
    if protocol.gates:
        rates = chosen_rates(plan, results, [plan.baseline])
        yield gate_plan(plan, rates)
        for each in pass_gates(protocol, _reached(gate_plan(plan, rates), results)):
            log(str(each))
        plan = passed_plan(plan, results)
    yield tuning_plan(plan)
    rates = chosen_rates(plan, results)
    for (task, label), rate in rates.items():
        log(f"{task}, {label}: rate {rate:g}")
    yield confirmation_plan(plan, rates, look)


def passed_plan(plan: Plan, results: Path) -> Plan:
    """Return the plan without tasks whose gate failed; the whole before gates were measured.

    Args:
        plan: The study's.
        results: The folder that holds its runs.
    """
    closed = {each.gate.task for each in failed_gates(_gates(plan, results))}
    return replace(plan, bases={task: b for task, b in plan.bases.items() if task not in closed})


def tuning_plan(plan: Plan, labels: Sequence[str] | None = None) -> Plan:
    """Return the runs that choose rates: every variant × the same rates, on tuning seeds.

    Args:
        plan: The study's.
        labels: Which variants; all for None.
    """
    protocol = _protocol(plan)
    chosen = [each for each in plan.variants if labels is None or each.label in labels]
    for each in chosen:
        for name in CHOSEN:
            if name in each.training:
                raise ValueError(
                    f"`training` of {each.label!r} must leave {name} to the protocol, got "
                    f"{each.training[name]!r}; set it for all variants of the task"
                )
    return replace(
        plan,
        name=stage_grid(plan.name, TUNING),
        question=f"Which rate suits each variant? Tuning seeds of {plan.name}, never a result.",
        variants=[_at_rate(each, rate) for each in chosen for rate in protocol.rates],
        bases={task: _shortened(base, protocol.tuning_share) for task, base in plan.bases.items()},
        seeds=protocol.tuning_seeds,
        baseline="",
        study=None,
        stamp=protocol.digest,
    )


def gate_plan(plan: Plan, rates: Rates) -> Plan:
    """Return the baseline's whole runs on the first tuning seed, at its chosen rates.

    Args:
        plan: The study's.
        rates: Of the baseline, by task.
    """
    protocol = _protocol(plan)
    gated = {each.task for each in protocol.gates}
    return replace(
        plan,
        name=stage_grid(plan.name, GATES),
        question=f"Has the baseline of {plan.name} learned its tasks?",
        variants=[each for each in plan.variants if each.label == plan.baseline],
        bases={task: base for task, base in plan.bases.items() if task in gated},
        seeds=protocol.tuning_seeds[:1],
        rates=rates,
        study=None,
        stamp=protocol.digest,
    )


def confirmation_plan(plan: Plan, rates: Rates, look: Look) -> Plan:
    """Return the runs that a look waits for: every variant at its own rate, on test seeds.

    Args:
        plan: The study's.
        rates: Of every task and variant.
        look: Up to which.
    """
    protocol = _protocol(plan)
    seeds = protocol.seeds_of(look)
    return replace(plan, seeds=seeds, rates=rates, study=None, stamp=protocol.digest)


def planned_runs(plan: Plan, results: Path) -> frozenset[str]:
    """Return the ids of all runs that a study makes, as far as its records have chosen rates.

    Args:
        plan: The study's.
        results: The folder that holds its runs.
    """
    protocol = _protocol(plan)
    stages = [tuning_plan(plan)]
    rates = _known_rates(plan, results, None)
    if protocol.gates and all((task, plan.baseline) in rates for task in plan.bases):
        stages.append(gate_plan(plan, rates))
    if not stops(protocol, _gates(plan, results)):
        passed = passed_plan(plan, results)
        if all((task, each.label) in rates for task in passed.bases for each in plan.variants):
            stages.append(confirmation_plan(passed, rates, protocol.looks[-1]))
    return frozenset(run.id for stage in stages for run in stage.runs)


def chosen_rates(plan: Plan, results: Path, labels: Sequence[str] | None = None) -> Rates:
    """Return the rate of least validation loss for each task and variant, by tuning runs alone.

    Args:
        plan: The study's.
        results: The folder that holds its tuning runs.
        labels: Which variants; all for None.
    """
    found = _known_rates(plan, results, labels)
    wanted = [each.label for each in plan.variants if labels is None or each.label in labels]
    missing = [(t, label) for t in plan.bases for label in wanted if (t, label) not in found]
    if missing:
        task, label = missing[0]
        raise FileNotFoundError(
            f"{results} must hold the tuning runs of {plan.name!r}, got none or a part for "
            f"{len(missing)} of {len(plan.bases) * len(wanted)} cells, such as {label!r} on "
            f"{task}; compute them with: {plan.command} {shlex.join(['--out', str(results)])}"
        )
    return found


def study_status(plan: Plan, results: Path) -> StudyStatus:
    """Return how far a study is.

    Args:
        plan: The study's.
        results: The folder that holds its runs.
    """
    protocol, gates = _protocol(plan), _gates(plan, results)
    stopped = stops(protocol, gates)
    if not stopped:
        plan = passed_plan(plan, results)
    tuning = tuning_plan(plan).runs
    rates = _known_rates(plan, results, None)
    finished = 0
    if len(rates) == len(plan.bases) * len(plan.variants):
        cells = confirmation_plan(plan, rates, protocol.looks[-1]).cells
        ended = {cell.seed: True for cell, _ in cells}
        for cell, _ in cells:
            ended[cell.seed] &= _finished(results, cell.run) is not None
        for seed in protocol.test_seeds:
            if not ended[seed]:
                break
            finished += 1
    return StudyStatus(
        rates=rates,
        gates=gates,
        tuned=(sum(_finished(results, each.id) is not None for each in tuning), len(tuning)),
        finished=finished,
        look=protocol.look(finished),
        stopped=stopped,
    )


def choose_look(protocol: StudyProtocol, seeds: int | None) -> Look:
    """Return the look of so many seeds; the first for None, and refuse a number that is none's."""
    if seeds is None:
        return protocol.looks[0]
    for look in protocol.looks:
        if look.seeds == seeds:
            return look
    counts = ", ".join(str(each.seeds) for each in protocol.looks)
    raise ValueError(
        f"`seeds` must be that of a look of {protocol.name!r}, {counts}, got {seeds}; a study that "
        "stops elsewhere chose its end by its numbers"
    )


def _known_rates(
    plan: Plan, results: Path, labels: Sequence[str] | None
) -> dict[tuple[str, str], float]:
    protocol = _protocol(plan)
    runs = {
        (cell.task, cell.variant, cell.seed): cell.run
        for cell, _ in tuning_plan(plan, labels).cells
    }
    found = {}
    for task in plan.bases:
        for each in plan.variants:
            if labels is not None and each.label not in labels:
                continue
            losses: dict[float, list[float | None]] = {}
            for rate in protocol.rates:
                label = _at_rate(each, rate).label
                ids = [runs[task, label, seed] for seed in protocol.tuning_seeds]
                ended = [record for run in ids if (record := _finished(results, run)) is not None]
                if len(ended) == len(ids):
                    losses[rate] = [_loss(record) for record in ended]
            if len(losses) == len(protocol.rates):
                found[task, each.label] = choose_rate(losses)
    return found


def _gates(plan: Plan, results: Path) -> tuple[GateResult, ...]:
    """Return how every gate stands, as far as the baseline's rates are chosen."""
    protocol = _protocol(plan)
    rates = _known_rates(plan, results, [plan.baseline])
    known = all((task, plan.baseline) in rates for task in plan.bases)
    reached = _reached(gate_plan(plan, rates), results) if protocol.gates and known else {}
    return gate_results(protocol, reached)


def _reached(gates: Plan, results: Path) -> dict[tuple[str, str], float]:
    """Return what the baseline reached on validation examples: the test split is not looked at.

    A baseline that diverged, or ended without a number, reached NaN: a gate that it fails.
    """
    found = {}
    for cell, _ in gates.cells:
        record = _finished(results, cell.run)
        if record is None:
            continue
        best = (record.result or {}).get("validation") or {}
        for endpoint in GATED:
            value = None if record.state is State.DIVERGED else best.get(endpoint)
            found[cell.task, endpoint] = math.nan if value is None else float(value)
    return found


def _finished(results: Path, run: str) -> Record | None:
    folder = run_folder(results, run)
    if not (folder / RESULT).is_file():
        return None
    record = read_record(folder)
    return record if record.state in FINISHED else None


def _loss(record: Record) -> float | None:
    """Return the validation loss of a run; None where it diverged."""
    result = record.result or {}
    best = result.get("validation")
    return None if best is None or result["status"] == "diverged" else float(best["loss"])


def _at_rate(variant: Variant, rate: float) -> Variant:
    return replace(
        variant,
        label=rate_label(variant.label, rate),
        words=f"{variant.words}, learning rate {rate:g}".removeprefix(", "),
        training=dict(variant.training) | {"learning_rate": rate},
    )


def _shortened(base: Preset, share: float | None) -> Preset:
    if share is None:
        return base
    training = base.training
    updates = max(2, round(share * training.updates))
    short = replace(
        training,
        updates=updates,
        warmup=min(round(share * training.warmup), updates - 1),
        evaluate_every=min(training.evaluate_every, updates),
    )
    return replace(base, training=short)


def _protocol(plan: Plan) -> StudyProtocol:
    if plan.study is None:
        raise ValueError(
            f"`study` of {plan.name!r} must be a protocol, got None; compute a plan without one by "
            "`compute`"
        )
    return plan.study
