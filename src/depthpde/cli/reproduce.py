"""``depthpde reproduce``: one experiment of the papers, ending in claim → finding → verdict."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.experiments.extent import Extent
    from depthpde.experiments.findings import Findings

SUMMARY = "run one experiment of the papers and judge its claims; stops and goes on at any time"
EXAMPLES = """examples:
  depthpde reproduce                                    (lists the experiments)
  depthpde reproduce stabilization --scale quick        (a smoke run)
  depthpde reproduce placement --seeds 6 --workers 2
  depthpde reproduce placement --judge --out results    (judge what is recorded, train nothing)

Ctrl-C saves what runs, and the same command goes on. For clusters use depthpde sweep, then --judge.
"""
RESULTS = Path("out/results")
ALONE = ("stabilization", "discretization", "depth_limit", "architectures", "efficiency")
"""Experiments that measure more than a grid of runs: each a module with `reproduce`."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="which; without it they are listed")
    add("--scale", default="mini", help="quick (a smoke run), mini (default) or full (GPUs)")
    add("--seeds", type=int, metavar="N", help="paired seeds (default: the experiment's own)")
    add("--tasks", nargs="+", metavar="TASK", help="other tasks than the experiment's own")
    add("--workers", type=int, default=1, metavar="N", help="processes at once (default 1)")
    add("--judge", action="store_true", help="judge what is recorded; train nothing")
    add("--out", type=Path, default=RESULTS, metavar="RESULTS", help=f"default: {RESULTS}")
    add("--data", type=Path, help="folder with the official files")
    add("--json", action="store_true", help="print the findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, judge, print the table, write the page.

    Returns:
        0; 1 where runs failed, 130 where it was interrupted.
    """
    from depthpde.errors import check_name, check_one_of, check_positive
    from depthpde.experiments.extent import Extent
    from depthpde.experiments.questions import QUESTIONS

    if arguments.name is None:
        return _list()
    name = check_name("NAME", arguments.name, [*QUESTIONS, *ALONE])
    extent = check_one_of("scale", arguments.scale, Extent)
    for option in ("seeds", "workers"):
        if getattr(arguments, option) is not None:
            check_positive(f"--{option}", getattr(arguments, option))
    if name in QUESTIONS:
        found, code = _grid(name, extent, arguments)
    else:
        found, code = _alone(name, extent, arguments), 0
    if found is None:
        return code
    print(json.dumps(found.to_dict(), indent=1) if arguments.json else found.text())
    _page(arguments.out)
    return code


def _list() -> int:
    from importlib import import_module

    from depthpde.experiments.questions import QUESTIONS

    for name, planner in QUESTIONS.items():
        print(f"{name:<22}{planner().question}")
    for name in ALONE:
        print(f"{name:<22}{import_module(f'depthpde.experiments.{name}').QUESTION}")
    return 0


def _grid(name: str, extent: Extent, arguments: argparse.Namespace) -> tuple[Findings | None, int]:
    """Compute what a grid lacks, and judge it; nothing is judged when it was interrupted."""
    from depthpde.experiments.board import Board
    from depthpde.experiments.engine import sweep
    from depthpde.experiments.findings import check_scale
    from depthpde.experiments.place import Folders
    from depthpde.experiments.pool import Pool
    from depthpde.experiments.questions import QUESTIONS
    from depthpde.experiments.record import read_records
    from depthpde.report.claims import judge
    from depthpde.report.evidence import gather

    plan = QUESTIONS[name](extent, seeds=arguments.seeds or 6, tasks=arguments.tasks)
    results: Path = arguments.out
    check_scale(results, name, extent.value)
    code = 0
    if not arguments.judge:
        plan.write(results)
        place = Pool(Folders(results=results, data=arguments.data), arguments.workers)
        with Board(plan.grid, results) as board:
            outcome = sweep(plan.runs, place, results, watch=lambda ended: board.look())
        code = outcome.exit_code
        if outcome.interrupted:
            print("interrupted; the same command goes on", file=sys.stderr)
            return None, code
    found = judge(gather(plan.grid_in(results), read_records(results).found), extent.value)
    found.write(results)
    return found, code


def _alone(name: str, extent: Extent, arguments: argparse.Namespace) -> Findings:
    from importlib import import_module

    from depthpde.experiments.findings import FINDINGS, read_findings

    if arguments.tasks:
        raise ValueError(f"`--tasks` must be left out for {name}; it has tasks of its own")
    if arguments.judge:
        return read_findings(arguments.out / FINDINGS / f"{name}.json")
    found: Findings = import_module(f"depthpde.experiments.{name}").reproduce(
        arguments.out,
        scale=extent.value,
        seeds=arguments.seeds,
        workers=arguments.workers,
        say=lambda line: print(line, file=sys.stderr, flush=True),
        data=arguments.data,
    )
    return found


def _page(results: Path) -> None:
    """Write the page, where there are runs to show."""
    from depthpde.experiments.record import RUNS
    from depthpde.report.document import write_report

    if (results / RUNS).is_dir():
        print(f"page    {write_report(results)}", file=sys.stderr)
