"""``depthpde demo``: four models trained, a paired table, a page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.sweeps.grid import Plan
    from depthpde.sweeps.sweep import SweepOutcome

SUMMARY = "train four small models on generated ListOps, compare them seed by seed, write the page"
EXAMPLES = """examples:
  depthpde demo
  depthpde demo --seeds 7 --out out/demo
  depthpde demo --updates 50 --out out/quick    (quicker, and shows less)

Nothing is downloaded. Ctrl-C saves; the same command goes on, and what is recorded is not
computed again."""
RESULTS = Path("out/demo")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add = parser.add_argument
    add("--out", type=Path, default=RESULTS, metavar="RESULTS", help=f"default: {RESULTS}")
    add("--seeds", type=int, default=3, metavar="N", help="paired seeds (default: 3)")
    add("--updates", type=int, metavar="N", help="updates of every run")
    add("--workers", type=int, metavar="N", help="processes (default: one a core)")
    add("--prepared", type=Path, help="folder of prepared tasks (default: the user's cache)")
    add("--json", action="store_true", help="print the comparison as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Train, compare, write the page."""
    from depthpde.errors import check_positive
    from depthpde.papers.demo import UPDATES, plan

    for name in ("updates", "workers"):
        if getattr(args, name) is not None:
            check_positive(f"--{name}", getattr(args, name))
    asked = plan(seeds=args.seeds, updates=args.updates or UPDATES)
    outcome = _train(asked, args)
    if outcome.interrupted:
        print("interrupted; saved: the same command goes on", file=sys.stderr)
        return outcome.exit_code
    for why in outcome.failed.values():
        print(f"failed: {why}", file=sys.stderr)
    _show(asked, args)
    return outcome.exit_code


def _train(asked: Plan, args: argparse.Namespace) -> SweepOutcome:
    from depthpde.pages.formatting import counted
    from depthpde.sweeps.board import TerminalBoard
    from depthpde.sweeps.compute import compute
    from depthpde.sweeps.executor import Folders
    from depthpde.sweeps.pool import Pool, cores

    workers = args.workers or cores()
    runs = asked.runs
    updates = counted(runs[0].training.updates, "update")
    processes = counted(workers, "process", "processes")
    _log(f"{counted(len(runs), 'run')} of {updates} in {processes}")
    pool = Pool(Folders(args.out, None, args.prepared), workers)
    with TerminalBoard(asked.grid, args.out) as board:
        return compute(
            asked, pool, retry_failed=True, log=_log, callback=lambda ended: board.look()
        )


def _show(asked: Plan, args: argparse.Namespace) -> None:
    from depthpde.pages.formatting import counted
    from depthpde.records.evidence import gather
    from depthpde.records.record import read_records
    from depthpde.report.page import write_report
    from depthpde.report.tables import paired_table

    table = paired_table(gather(asked.grid, read_records(args.out).found))
    page = write_report(args.out)
    if args.json:
        said = {"rows": list(table.tidy), "warnings": list(table.warnings), "page": str(page)}
        print(json.dumps(said))
        return
    print(table.text())
    print(
        "This shows that everything runs, and what a comparison looks like. One small task and "
        f"{counted(args.seeds, 'seed')}\ncannot show that one model is better than another: "
        "`depthpde sweep placement --seeds 6` asks that in earnest."
    )
    print(f"\npage: {page}")


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
