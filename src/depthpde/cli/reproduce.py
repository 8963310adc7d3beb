"""``depthpde reproduce``: one experiment of the papers, ending in claim → finding → verdict."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from depthpde.records.findings import Findings
    from depthpde.sweeps.scale import Scale

SUMMARY = "run one experiment of the papers and judge its claims; stops and goes on at any time"
EXAMPLES = """examples:
  depthpde reproduce                                    (lists the experiments)
  depthpde reproduce stabilization --scale quick        (a smoke run)
  depthpde reproduce placement --seeds 6 --workers 2
  depthpde reproduce placement --judge --out results    (judge what is recorded, train nothing)

Ctrl-C saves what runs, and the same command goes on. For clusters use depthpde sweep, then --judge.
"""
RESULTS = Path("out/results")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="which; without it they are listed")
    add("--scale", help="quick (a smoke run), mini (default) or full (GPUs)")
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
    from depthpde.papers.registry import QUESTIONS, REPRODUCTIONS
    from depthpde.sweeps.scale import Scale

    if arguments.name is None:
        return _list()
    name = check_name("NAME", arguments.name, [*QUESTIONS, *REPRODUCTIONS, "efficiency"])
    scale = check_one_of("scale", arguments.scale or "mini", Scale)
    for option in ("seeds", "workers"):
        if getattr(arguments, option) is not None:
            check_positive(f"--{option}", getattr(arguments, option))
    if name in QUESTIONS:
        found, code = _grid(name, scale, arguments)
    elif name in REPRODUCTIONS:
        found, code = _measured(name, scale, arguments), 0
    else:
        found, code = _efficiency(scale, arguments), 0
    if found is None:
        return code
    print(json.dumps(found.to_dict(), indent=1) if arguments.json else found.text())
    _page(arguments.out)
    return code


def _list() -> int:
    from depthpde.papers import efficiency
    from depthpde.papers.registry import QUESTIONS, REPRODUCTIONS
    from depthpde.sweeps.scale import Scale

    asked = {name: planner().question for name, planner in QUESTIONS.items()}
    asked |= {name: each.plan(Scale.MINI, seeds=1).question for name, each in REPRODUCTIONS.items()}
    for name, question in (asked | {efficiency.NAME: efficiency.QUESTION}).items():
        print(f"{name:<22}{question}")
    return 0


def _grid(name: str, scale: Scale, arguments: argparse.Namespace) -> tuple[Findings | None, int]:
    """Compute what a grid lacks, and judge it; nothing is judged when it was interrupted."""
    from depthpde.papers.registry import QUESTIONS
    from depthpde.records.evidence import gather
    from depthpde.records.findings import check_scale
    from depthpde.records.record import is_recorded, read_records
    from depthpde.report.claims import judge
    from depthpde.sweeps.board import TerminalBoard
    from depthpde.sweeps.executor import Folders
    from depthpde.sweeps.pool import Pool
    from depthpde.sweeps.sweep import sweep

    plan = QUESTIONS[name](scale, seeds=arguments.seeds or 6, tasks=arguments.tasks)
    results: Path = arguments.out
    check_scale(results, name, scale.value)
    code = 0
    if arguments.judge and not any(is_recorded(results, each.id) for each in plan.runs):
        raise FileNotFoundError(
            f"{results} must hold runs of {name!r} at this scale, got none; compute them without "
            f"--judge, or with: depthpde sweep {name}"
        )
    if not arguments.judge:
        plan.write(results)
        folders = Folders(results, arguments.data, arguments.prepared)
        place = Pool(folders, arguments.workers, device=arguments.device or "cpu")
        with TerminalBoard(plan.grid, results) as board:
            outcome = sweep(
                plan.runs, place, results, retry_failed=True, callback=lambda ended: board.look()
            )
        code = outcome.exit_code
        if outcome.interrupted:
            print("interrupted; the same command goes on", file=sys.stderr)
            return None, code
    found = judge(gather(plan.grid_in(results), read_records(results).found), scale.value)
    found.write(results)
    return found, code


def _measured(name: str, scale: Scale, arguments: argparse.Namespace) -> Findings:
    """Compute what an experiment of paper B lacks, measure and judge it."""
    from depthpde.papers.registry import REPRODUCTIONS

    if arguments.tasks:
        raise ValueError(f"`--tasks` must be left out for {name}; it has tasks of its own")
    asked = REPRODUCTIONS[name]
    shared: dict[str, Any] = {
        "scale": scale.value, "seeds": arguments.seeds, "log": _say, "data": arguments.data,
        "prepared": arguments.prepared,
    }  # fmt: skip
    if arguments.judge:
        return asked.judge(arguments.out, **shared)
    device = arguments.device or "cpu"
    return asked(arguments.out, workers=arguments.workers, device=device, **shared)


def _efficiency(scale: Scale, arguments: argparse.Namespace) -> Findings:
    """Measure costs, or show what was measured: nothing but the findings is kept of them."""
    from depthpde.papers.efficiency import NAME, reproduce
    from depthpde.records.findings import FINDINGS, check_scale, read_findings

    if arguments.tasks:
        raise ValueError(f"`--tasks` must be left out for {NAME}; it has none")
    if arguments.device:
        raise ValueError(f"`--device` must be left out for {NAME}; it takes a GPU if there is one")
    if not arguments.judge:
        return reproduce(arguments.out, scale=scale, seeds=arguments.seeds, log=_say)
    if arguments.seeds:
        raise ValueError(f"`--seeds` must be left out to judge {NAME}: what was measured is shown")
    path: Path = arguments.out / FINDINGS / f"{NAME}.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} must hold what was measured; measure it without --judge")
    if arguments.scale:
        check_scale(arguments.out, NAME, scale.value)
    return read_findings(path)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _page(results: Path) -> None:
    """Write the page, where there are runs to show."""
    from depthpde.records.record import RUNS
    from depthpde.report.page import write_report

    if (results / RUNS).is_dir():
        print(f"page    {write_report(results)}", file=sys.stderr)
