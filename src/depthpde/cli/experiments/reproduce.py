"""``depthpde reproduce``: one experiment, ending in claim → finding → verdict."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.papers.experiment import Experiment
    from depthpde.papers.reproduce import Reproduction
    from depthpde.sweeps.executor import Folders
    from depthpde.sweeps.grid import Plan
    from depthpde.sweeps.scale import Scale
    from depthpde.sweeps.sweep import SweepOutcome

SUMMARY = "run one experiment of the papers and judge its claims; stops and goes on at any time"
EXAMPLES = """examples:
  depthpde reproduce                                    (lists the experiments)
  depthpde reproduce stabilization --scale quick        (a smoke run)
  depthpde reproduce placement --seeds 6 --workers 2
  depthpde reproduce placement --judge --out results    (judge what is recorded, train nothing)
  depthpde reproduce my-grid.yaml --workers 2           (a grid of your own under a protocol)

Ctrl-C saves what runs, and the same command goes on. For clusters use depthpde sweep, then --judge.
"""
RESULTS = Path("out/results")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add = parser.add_argument
    listed = "which, or a grid of your own under a protocol; without it they are listed"
    add("name", metavar="NAME|FILE", nargs="?", help=listed)
    add("--scale", help="quick (a smoke run), mini (default) or full (GPUs; no protocol)")
    add("--seeds", type=int, metavar="N", help="paired seeds (default: the experiment's own)")
    add("--tasks", nargs="+", metavar="TASK", help="other tasks than the experiment's own")
    add("--workers", type=int, default=1, metavar="N", help="processes at once (default 1)")
    add("--device", help="cpu (default), cuda, cuda:1 …")
    add("--judge", action="store_true", help="judge what is recorded; train nothing")
    add("--out", type=Path, default=RESULTS, metavar="RESULTS", help=f"default: {RESULTS}")
    add("--data", type=Path, help="folder with the official files")
    add("--prepared", type=Path, help="folder of prepared tasks (default: the user's cache)")
    add("--json", action="store_true", help="print the findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, judge, print the table, write the page.

    Returns:
        0; 1 where runs failed, 130 where it was interrupted.
    """
    from depthpde.errors import check_name, check_one_of, check_positive
    from depthpde.papers.registry import EXPERIMENTS
    from depthpde.sweeps.grid_file import FILES
    from depthpde.sweeps.scale import Scale

    if arguments.name is None:
        return _list()
    for option in ("seeds", "workers"):
        if getattr(arguments, option) is not None:
            check_positive(f"--{option}", getattr(arguments, option))
    if arguments.name.endswith(FILES):
        ended = _reproduce_own(arguments)
    else:
        name = check_name("NAME", arguments.name, EXPERIMENTS)
        scale = check_one_of("scale", arguments.scale or "mini", Scale)
        ended = _reproduce(EXPERIMENTS[name], scale, arguments)
    if ended.findings is None:
        why = "interrupted" if ended.exit_code == 130 else "not judged: runs failed or wait"
        print(f"{why}; the same command goes on", file=sys.stderr)
        return ended.exit_code
    found = ended.findings
    print(json.dumps(found.to_dict(), indent=1) if arguments.json else found.text())
    _page(arguments.out)
    return ended.exit_code


def _list() -> int:
    from depthpde.papers.registry import EXPERIMENTS

    for name, each in EXPERIMENTS.items():
        print(f"{name:<22}{each.question}")
    return 0


def _reproduce(experiment: Experiment, scale: Scale, arguments: argparse.Namespace) -> Reproduction:
    from depthpde.data.catalog import default_data
    from depthpde.papers.experiment import JudgedBy
    from depthpde.papers.reproduce import Reproduction, reproduce, stored_findings
    from depthpde.sweeps.executor import Folders

    results: Path = arguments.out
    if experiment.judged_by is JudgedBy.MACHINE:
        _check_machine(experiment, scale, arguments)
        if arguments.judge:
            return Reproduction(stored_findings(experiment, results))
    folders = Folders(results, arguments.data or default_data(), arguments.prepared)
    return reproduce(
        experiment,
        folders,
        scale=scale,
        seeds=arguments.seeds,
        tasks=arguments.tasks,
        compute=None if arguments.judge else lambda plan: _compute(plan, folders, arguments),
        log=_log,
    )


def _reproduce_own(arguments: argparse.Namespace) -> Reproduction:
    from depthpde.data.catalog import default_data
    from depthpde.papers.reproduce import reproduce_own
    from depthpde.sweeps.executor import Folders
    from depthpde.sweeps.grid_file import read_plan

    for option in ("scale", "tasks"):
        if getattr(arguments, option):
            raise ValueError(
                f"`--{option}` must be left out for a grid of your own, got "
                f"{getattr(arguments, option)!r}; the file says it"
            )
    plan = read_plan(Path(arguments.name))
    folders = Folders(arguments.out, arguments.data or default_data(), arguments.prepared)
    return reproduce_own(
        plan,
        folders,
        seeds=arguments.seeds,
        compute=None if arguments.judge else lambda each: _compute(each, folders, arguments),
        log=_log,
    )


def _compute(plan: Plan, folders: Folders, arguments: argparse.Namespace) -> SweepOutcome:
    from depthpde.sweeps.board import TerminalBoard
    from depthpde.sweeps.compute import compute
    from depthpde.sweeps.pool import local_executor

    workers = 0 if arguments.workers == 1 else arguments.workers
    with TerminalBoard(plan.grid, folders.results) as board:
        executor = local_executor(
            folders, workers, device=arguments.device or "cpu", look=board.look
        )
        return compute(
            plan, executor, retry_failed=True, log=_log, callback=lambda ended: board.look()
        )


def _check_machine(experiment: Experiment, scale: Scale, arguments: argparse.Namespace) -> None:
    """Refuse options that mean nothing for measurements of this machine."""
    from depthpde.records.findings import check_scale

    name = experiment.name
    if arguments.tasks:
        raise ValueError(f"`--tasks` must be left out for {name}; it has none")
    if arguments.device:
        raise ValueError(f"`--device` must be left out for {name}; it takes a GPU if there is one")
    if arguments.judge and arguments.seeds:
        raise ValueError(f"`--seeds` must be left out to judge {name}: what was measured is shown")
    if arguments.judge and arguments.scale:
        check_scale(arguments.out, name, scale.value)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _page(results: Path) -> None:
    """Write the page, where there are runs to show."""
    from depthpde.records.record import RUNS
    from depthpde.report.page import write_report

    if (results / RUNS).is_dir():
        print(f"page    {write_report(results)}", file=sys.stderr)
