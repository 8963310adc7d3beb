"""compare(task, variants, seeds) → ComparisonReport: train, judge by pairs, show."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from depthpde.comparison.entrant import recorded
from depthpde.comparison.modules import trained
from depthpde.comparison.report import ComparisonReport
from depthpde.data.catalog import prepare
from depthpde.data.lookup import find_task, is_source
from depthpde.data.task import Task, TaskKind
from depthpde.data.tasks import TASKS
from depthpde.errors import check_one_of
from depthpde.models.config import ModelConfig
from depthpde.records.evidence import gather
from depthpde.records.record import read_records
from depthpde.records.scores import Endpoint
from depthpde.runs.defaults import defaults
from depthpde.runs.presets import Preset, preset
from depthpde.runs.settings import usual_preset
from depthpde.sweeps.board import TerminalBoard
from depthpde.sweeps.compute import compute
from depthpde.sweeps.executor import Executor, Folders
from depthpde.sweeps.grid import Plan, Variant
from depthpde.sweeps.pool import Pool, cores
from depthpde.training.config import TrainingConfig

PREPARED = "tasks"
"""Where a comparison keeps its prepared data, inside its folder."""

Given = Mapping[str, Any] | Variant | Callable[[], nn.Module]


def compare(
    task: Task | str,
    variants: Mapping[str, Given],
    *,
    seeds: int | Sequence[int] = 3,
    model: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    endpoint: Endpoint | str | None = None,
    out: str | Path = "out/compare",
    executor: Executor | None = None,
) -> ComparisonReport:
    """Train every variant from the same seeds, judge the differences by pairs, and keep all of it.

        gain of a variant = its score − the first one's, seed by seed

    Sizes and rates follow the task. What is recorded in `out` is not computed again, so that more
    seeds or another variant cost what is new. One variant needs six pairs to carry a verdict, two
    need seven.

    >>> x, y = torch.randn(40, 12).cumsum(1), [0, 1] * 20
    >>> task = dp.Task.from_arrays("walks", x, y)
    >>> variants = {"plain": {}, "diffusion": {"positions": ("after_embedding",)}}
    >>> result = dp.compare(task, variants, seeds=3)   # doctest: +SKIP
    >>> print(result); result.save("compare.html")   # doctest: +SKIP

    Args:
        task: A task, the name of one, ``module:function`` or a folder of arrays.
        variants: Label → what it changes of the model, as fields of a `ModelConfig`; or a `Variant`
            that changes its training too; or a function that makes an nn.Module. The first is what
            the others are compared with.
        seeds: How many, or which.
        model: Fields of the ModelConfig to change for all.
        training: Fields of the TrainingConfig to change for all.
        endpoint: ``accuracy`` or ``loss``; the loss for a text, else the accuracy.
        out: The results folder.
        executor: Where it is computed; one process a core if not given. Modules are always
            trained in this process.
    """
    known = find_task("", task) if isinstance(task, str) and is_source(task) else task
    known = TASKS[known] if isinstance(known, str) and known in TASKS else known
    if isinstance(known, str):
        known = find_task(known)  # says which there are
    language = known.kind is TaskKind.LANGUAGE
    chosen = Endpoint.LOSS if language else Endpoint.ACCURACY
    chosen = chosen if endpoint is None else check_one_of("endpoint", endpoint, Endpoint)
    made = [label for label, each in variants.items() if _is_factory(label, each)]
    if made and len(made) < len(variants):
        other = next(label for label in variants if label not in made)
        raise ValueError(
            f"`variants` must be all settings or all functions, got a function for {made[0]!r} "
            f"and settings for {other!r}; write dp.Classifier(config, task=task) as a function"
        )
    results = Path(out) if executor is None else executor.folders.results
    base = _base(known, task, results, model, training)
    if made:
        place = results / PREPARED
        prepare(known, out=place)
        count = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
        factories: dict[str, Any] = dict(variants)
        entrants = trained(known, factories, count, base.training, chosen, place, _log)
        return ComparisonReport(task=known.name, endpoint=chosen, entrants=entrants)
    plan = _plan(known, variants, base, seeds)
    where = executor or Pool(_folders(known, results), min(cores(), len(plan.runs)))
    with TerminalBoard(plan.grid, results) as board:
        outcome = compute(
            plan, where, retry_failed=True, log=_log, callback=lambda ended: board.look()
        )
    if outcome.interrupted:
        raise KeyboardInterrupt("saved; the same call goes on")
    for why in outcome.failed.values():
        _log(f"failed: {why}")
    evidence = gather(plan.grid, read_records(results).found)
    return ComparisonReport(
        task=known.name, endpoint=chosen, entrants=recorded(evidence, chosen), results=results
    )


def _is_factory(label: str, given: Given) -> bool:
    """Say whether a variant is a function that makes a module; refuse a module that was made."""
    if isinstance(given, nn.Module):
        kind = type(given).__name__
        raise ValueError(
            "`variants` must be functions that make a new nn.Module for every seed, got a "
            f"{kind} for {label!r}; write {label!r}: lambda: {kind}(…)"
        )
    return callable(given) and not isinstance(given, Mapping | Variant)


def _base(
    task: Task,
    given: Task | str,
    results: Path,
    model: Mapping[str, Any] | None,
    training: Mapping[str, Any] | None,
) -> Preset:
    """Return what all variants start from; a task of one's own is kept where workers find it."""
    ours = TASKS.get(task.name) is task
    base = preset(usual_preset(task.name), task.name) if ours else defaults(task)
    source = None
    if not ours:
        source = given if isinstance(given, str) else None
        source = source or str(prepare(task, out=results / PREPARED).resolve())
    wanted = dict(training or {})
    settings = base.training.to_dict() | wanted
    if "updates" in wanted:  # a shorter run is looked at as often
        shares = {"warmup": 10, "evaluate_every": 5, "log_every": 20}
        usual = {name: max(1, wanted["updates"] // share) for name, share in shares.items()}
        settings |= {name: each for name, each in usual.items() if name not in wanted}
        settings["warmup"] = min(settings["warmup"], wanted["updates"] - 1)
    return replace(
        base,
        model=ModelConfig.from_dict(base.model.to_dict() | dict(model or {})),
        training=TrainingConfig.from_dict(settings),
        source=source,
    )


def _plan(
    task: Task, variants: Mapping[str, Given], base: Preset, seeds: int | Sequence[int]
) -> Plan:
    rows = [_variant(label, each) for label, each in variants.items()]
    plan = Plan(
        name=task.name,
        question=f"Which of {', '.join(variants)} does best on {task.name}?",
        variants=rows,
        bases={task.name: base},
        seeds=seeds,
    )
    # Other settings are another comparison in the same folder, which shares the runs it can.
    text = " ".join(run.id for cell, run in plan.cells if cell.seed == plan.cells[0][0].seed)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return replace(plan, name=f"{task.name}-{digest}")


def _variant(label: str, given: Given) -> Variant:
    if isinstance(given, Variant):
        return replace(given, label=label)
    if not isinstance(given, Mapping):
        raise ValueError(
            f"`variants` must map labels to settings of the model, got {given!r} for {label!r}; "
            'write {"positions": ("after_embedding",)}, or {} for the plain model'
        )
    return Variant(label, model=dict(given))


def _folders(task: Task, results: Path) -> Folders:
    return Folders(results, prepared=results / PREPARED if task.own else None)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
