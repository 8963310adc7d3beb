"""Records and a grid → numbers: accuracies, paired differences, escapes, what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from depthpde.errors import check_name
from depthpde.records.escapes import LEARNED_AT_ONCE, Escape, escape_rate
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.records.record import Grid, Record, State
from depthpde.records.run_model import VariantRole, position_of, role_of
from depthpde.records.statistics.combination import combined_mean
from depthpde.records.statistics.paired import Comparison, compare
from depthpde.records.statistics.stratified import (
    Overall,
    Runs,
    compare_over_tasks,
    paired,
    shared_pairs,
)
from depthpde.records.trivial_lines import largest_class, with_probes

Cell = tuple[str, str]
"""Task and variant."""
SEEDS = 6
"""What is said of an average over tasks wants this many pairs on every one of them."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A run that a grid asks for and that has no result."""

    task: str
    variant: str
    seed: int
    run: str
    state: str
    """Pending, running, interrupted, failed …; as the run's own status says it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What the finished runs of one grid show.

    >>> results = dp.read_results(Path("results"))
    >>> evidence = dp.gather(results.grids["decoder-longer"], results.records)
    >>> evidence.tasks
    ('wikitext2-mini',)
    """

    name: str
    question: str
    baseline: str
    tasks: tuple[str, ...]
    """In the order of the grid."""
    variants: tuple[str, ...]
    """In the order of the grid, the baseline first."""
    words: Mapping[str, str]
    """Variant → what it is; empty where the grid says nothing."""
    runs: Mapping[Cell, Mapping[int, Record]]
    """Cell → seed → finished run."""
    missing: tuple[Missing, ...]
    protocol: StudyProtocol | None = None
    """What was laid down before its first run; None where nothing was."""
    whole: Evidence | None = field(default=None, compare=False, repr=False)
    """What this is a part of; None where it is all."""
    compared: dict[str, dict[str, Overall]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Variant → comparisons with it that were computed already; see `over_all`."""
    alone: dict[str, dict[str, Comparison]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Task → comparisons on it that were computed already; see `by_task`."""
    lines: dict[str, dict[str, float]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Task → its trivial lines that were read already; see `trivial`."""
    scored: dict[str, dict[str, dict[str, dict[int, float]]]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Endpoint → scores that were read already; see `scores_of`."""
    reached: dict[Cell, dict[int, float]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Cell → accuracies that were read already; see `accuracies`."""

    def accuracies(self, task: str, variant: str) -> dict[int, float]:
        """Return seed → test accuracy in percent, in the order of seeds."""
        cell = (task, variant)
        if cell not in self.reached:
            found = {seed: score(run) for seed, run in sorted(self.runs.get(cell, {}).items())}
            self.reached[cell] = {seed: each for seed, each in found.items() if each is not None}
        return self.reached[cell]

    def pairs(self, task: str, variant: str) -> dict[int, float]:
        """Return seed → variant − baseline, in points, for the seeds that both have."""
        return paired(self.accuracies(task, variant), self.accuracies(task, self.baseline))

    def records(self, variant: str) -> list[Record]:
        """Return the finished runs of a variant, by task and seed."""
        found = (self.runs.get((task, variant), {}) for task in self.tasks)
        return [run for runs in found for _, run in sorted(runs.items())]

    @property
    def others(self) -> tuple[str, ...]:
        """The variants that are compared with the baseline."""
        return tuple(each for each in self.variants if each != self.baseline)

    @property
    def seeds(self) -> tuple[int, int]:
        """The least and the largest number of finished seeds of a cell that the grid has."""
        asked = {(each.task, each.variant) for each in self.missing} | set(self.runs)
        counts = [len(self.runs.get(cell, {})) for cell in asked]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def has_baseline(self) -> bool:
        """Whether any run of the baseline is there, or asked for."""
        asked = {each.variant for each in self.missing} | {variant for _, variant in self.runs}
        return self.baseline in asked

    def role(self, variant: str) -> VariantRole:
        """Describe what a variant is: the baseline, ours, a control, or something else."""
        if variant == self.baseline:
            return VariantRole.BASELINE
        run, usual = (next(iter(self.records(each)), None) for each in (variant, self.baseline))
        if run is None:
            return VariantRole.OURS
        return role_of(run.config, run.config if usual is None else usual.config)

    def select(
        self, *, tasks: Iterable[str] | None = None, variants: Iterable[str] | None = None
    ) -> Evidence:
        """Return the part that speaks of some tasks and variants; the baseline always stays.

        Args:
            tasks: Names of tasks; all if not given.
            variants: Names of variants; all if not given.
        """
        chosen = {check_name("tasks", each, self.tasks) for each in tasks or self.tasks}
        kept = {
            check_name("variants", each, self.variants) for each in variants or self.variants
        } | {self.baseline}
        return replace(
            self,
            tasks=tuple(each for each in self.tasks if each in chosen),
            variants=tuple(each for each in self.variants if each in kept),
            runs={
                cell: runs
                for cell, runs in self.runs.items()
                if cell[0] in chosen and cell[1] in kept
            },
            missing=tuple(m for m in self.missing if m.task in chosen and m.variant in kept),
            whole=self.whole or self,
        )


def gather(
    grid: Grid, records: Mapping[str, Record], protocol: StudyProtocol | None = None
) -> Evidence:
    """Gather what the finished runs of a grid show.

    >>> results = dp.read_results(Path("results"))
    >>> evidence = dp.gather(results.grids["decoder-longer"], results.records)

    Args:
        grid: Which runs, and what they are called.
        records: Run id → record.
        protocol: What the folder holds of the grid's name; see `Results.protocols`.
    """
    runs: dict[Cell, dict[int, Record]] = {}
    missing = []
    for cell in grid.cells:
        record = records.get(cell.run)
        if record is not None and score(record) is not None:
            runs.setdefault((cell.task, cell.variant), {})[cell.seed] = record
            continue
        state = "pending" if record is None else _state(record)
        missing.append(Missing(cell.task, cell.variant, cell.seed, cell.run, state))
    tasks = dict.fromkeys(cell.task for cell in grid.cells)
    variants = dict.fromkeys(cell.variant for cell in grid.cells)
    return Evidence(
        name=grid.name,
        question=grid.question,
        baseline=grid.baseline,
        tasks=tuple(tasks),
        variants=(grid.baseline, *(each for each in variants if each != grid.baseline)),
        words={name: str(about.get("words", "")) for name, about in grid.variants.items()},
        runs=runs,
        missing=tuple(missing),
        protocol=protocol,
    )


def score(record: Record) -> float | None:
    """Return a run's test accuracy in percent; None while it has none.

    A run that broke counts as the largest class, whatever weights it kept, so that what breaks is
    never left out of an average; as its own accuracy where that class is not known.
    """
    trivial = (record.result or {}).get("trivial")
    known = trivial if broke(record) and isinstance(trivial, Mapping) else {}
    largest = largest_class(known)
    return _accuracy(record) if largest is None else largest


def broke(record: Record) -> bool:
    """Return whether a run has ended and is no model: it diverged, or has no test accuracy."""
    if record.result is None:
        return False
    return record.state is State.DIVERGED or _accuracy(record) is None


def _accuracy(record: Record) -> float | None:
    try:
        accuracy = record.accuracy
    except (KeyError, TypeError, ValueError):
        return None
    return accuracy if accuracy is not None and math.isfinite(accuracy) else None


def by_task(evidence: Evidence) -> dict[str, dict[str, Comparison]]:
    """Compare every variant with the baseline on each task by itself, once.

    Variants that share fewer than two seeds with the baseline are left out.

    Returns:
        Task → variant → comparison; Holm's correction is over the variants of a task.
    """
    for task in evidence.tasks if not evidence.alone else ():
        enough = [each for each in evidence.others if len(evidence.pairs(task, each)) >= 2]
        runs = {each: evidence.accuracies(task, each) for each in enough}
        evidence.alone[task] = compare(evidence.accuracies(task, evidence.baseline), runs)
    return evidence.alone


def over_all(evidence: Evidence, *, against: str | None = None) -> dict[str, Overall]:
    """Compare every variant over the tasks on which it shares a seed with the baseline, once.

    A task that is learned at once or not yet stands in no mean: the others alone are compared. Of
    a grid that has no others the mean is told without an interval: it counts escapes, in points.

    >>> results = dp.read_results(Path("results"))
    >>> differences = dp.over_all(dp.gather(results.grids["decoder-longer"], results.records))

    Args:
        evidence: The runs.
        against: Another variant than the baseline to compare with.
    """
    reference = evidence.baseline if against is None else against
    if reference not in evidence.compared:
        evidence.compared[reference] = _over_all(evidence, reference)
    return evidence.compared[reference]


def _over_all(evidence: Evidence, reference: str) -> dict[str, Overall]:
    tasks = in_mean(evidence)
    found = _compared(evidence, reference, tasks or evidence.tasks)
    return found if tasks else {v: replace(each, interval=None) for v, each in found.items()}


def in_mean(evidence: Evidence) -> tuple[str, ...]:
    """Return the tasks that stand in a mean: all but those learned at once or not yet."""
    return tuple(task for task in evidence.tasks if task not in LEARNED_AT_ONCE)


def with_escapes(evidence: Evidence) -> dict[str, float]:
    """Return each variant's mean difference over all tasks, escapes counted in points.

    Printed beside the mean without them, never judged: it turns on how many runs left a plateau.
    """
    baseline, variants = _sharing(evidence, evidence.baseline, evidence.tasks)
    return {
        name: combined_mean(shared_pairs(name, runs, baseline)) for name, runs in variants.items()
    }


def _compared(evidence: Evidence, reference: str, tasks: Sequence[str]) -> dict[str, Overall]:
    return compare_over_tasks(*_sharing(evidence, reference, tasks))


def _sharing(
    evidence: Evidence, reference: str, tasks: Sequence[str]
) -> tuple[Runs, dict[str, Runs]]:
    """Return the reference's runs, and of each variant the tasks on which it shares a seed."""
    baseline = {task: evidence.accuracies(task, reference) for task in tasks}
    variants: dict[str, Runs] = {}
    for variant in evidence.variants:
        runs = {task: evidence.accuracies(task, variant) for task in tasks}
        shared = {task: each for task, each in runs.items() if paired(each, baseline[task])}
        if shared and variant != reference:
            variants[variant] = shared
    return baseline, variants


def lacking(
    evidence: Evidence,
    variant: str,
    against: str | None = None,
    scores: Mapping[str, Runs] | None = None,
) -> str | None:
    """Name the task whose pairs are too few to speak of the average; None if there is none.

    Args:
        evidence: The runs.
        variant: Which.
        against: Another variant than the baseline to compare with.
        scores: Variant → what is averaged, by task and seed, where it is not test accuracy.
    """
    other = evidence.baseline if against is None else against

    def reached(task: str, name: str) -> Mapping[int, float]:
        if scores is None:
            return evidence.accuracies(task, name)
        return scores.get(name, {}).get(task, {})

    counts = {
        task: len(paired(reached(task, variant), reached(task, other)))
        for task in in_mean(evidence) or evidence.tasks
    }
    task = min(counts, key=lambda each: counts[each])
    if counts[task] >= SEEDS:
        return None
    return f"{counts[task]} pairs on {task}, {SEEDS} on every task are wanted"


def trivial(evidence: Evidence, task: str) -> dict[str, float]:
    """Return what a task gives without long range, name → percent, lowest first."""
    if task not in evidence.lines:
        evidence.lines[task] = _trivial(evidence, task)
    return evidence.lines[task]


def _trivial(evidence: Evidence, task: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for (each, _), runs in evidence.runs.items():
        for run in runs.values() if each == task else ():
            lines = (run.result or {}).get("trivial")
            if not isinstance(lines, Mapping) or lines.keys() <= found.keys():
                continue  # nearly all runs of a task have the same ones
            for name, line in lines.items():
                if isinstance(line, int | float) and math.isfinite(line):
                    found.setdefault(str(name), float(line))
    return with_probes(task, found)


def escapes(evidence: Evidence, task: str, line: float) -> dict[str, Escape]:
    """Count for each variant the runs of a task that are clearly past a line.

    Args:
        evidence: The runs.
        task: Which one.
        line: In percent, such as one of `trivial`.
    """
    found: dict[str, Escape] = {}
    for variant in evidence.variants:
        runs = evidence.runs.get((task, variant), {})
        examples = [_examples(run) for run in runs.values()]
        if runs and all(examples):
            reached = list(evidence.accuracies(task, variant).values())
            found[variant] = escape_rate(reached, line, examples=min(examples))
    return found


def placed_at(evidence: Evidence) -> dict[str, str]:
    """Find the variant that stands for each position: diffusion there and nowhere else.

    Returns:
        Position → variant. Of several, the one called like the position, else the grid's first.
    """
    found: dict[str, str] = {}
    for variant in evidence.others:
        run = next(iter(evidence.records(variant)), None)
        position = None if run is None else position_of(run.config)
        if position is None:
            continue
        if position not in found or variant.replace(" ", "_") == position:
            found[position] = variant
    return found


def _examples(record: Record) -> int:
    test = (record.result or {}).get("test")
    count = test.get("targets") if isinstance(test, Mapping) else None
    return count if isinstance(count, int) and count > 0 else 0


def _state(record: Record) -> str:
    if record.result is not None:
        return "without a score"
    return str(record.status.get("state", "pending"))
