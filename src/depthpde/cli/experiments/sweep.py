"""``depthpde sweep``: a grid of runs, from one laptop to a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.sweeps.board import TerminalBoard
    from depthpde.sweeps.executor import Executor, Folders
    from depthpde.sweeps.grid import Plan
    from depthpde.sweeps.sweep import SweepOutcome

SUMMARY = "compute a grid of runs: here, in a local pool, on Ray or on SLURM; or show how it stands"
EXAMPLES = """examples:
  depthpde sweep placement --seeds 6 --workers 2
  depthpde sweep placement --scale quick --tasks listops-mini text-mini --seeds 2
  depthpde sweep status out/results
  depthpde sweep my-grid.yaml --ray auto --max-parallel 8
  depthpde sweep placement --scale full --slurm gpu --gpus 1 --device cuda --minutes 600

my-grid.yaml:
  name: width
  question: Does the wider model need diffusion?
  tasks: [listops-mini]
  seeds: 6
  model: {dim: 48}
  variants:
    baseline: {}
    after embedding: {model: {positions: [after_embedding]}}

Ctrl-C makes every run save; the same command goes on. What is recorded is never computed again,
and several sweeps may share one results folder. A failing run does not stop the rest."""
RESULTS = Path("out/results")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add = parser.add_argument
    add("what", metavar="NAME|FILE|status", help="an experiment, a grid of your own, or status")
    add("results", nargs="?", type=Path, metavar="RESULTS", help="for status: the results folder")
    add("--scale", help="quick, mini (default) or full; FILEs and protocols say it")
    add("--seeds", type=int, metavar="N", help="paired seeds (default: the experiment's own)")
    add("--tasks", nargs="+", metavar="TASK", help="other tasks than the experiment's own")
    add("--out", type=Path, default=RESULTS, metavar="RESULTS", help=f"default: {RESULTS}")
    add("--data", type=Path, help="folder with the official files")
    add("--prepared", type=Path, help="folder of prepared tasks (default: the user's cache)")
    add("--json", action="store_true", help="print how every cell stands as one JSON object")
    where = parser.add_argument_group("where it is computed")
    add = where.add_argument
    add("--workers", type=int, metavar="N",
        help="processes here (default: one a core); 0 computes in this one")  # fmt: skip
    add("--ray", nargs="?", const="auto", metavar="ADDRESS",
        help="a Ray cluster; auto: this machine's, or a new one")  # fmt: skip
    add("--slurm", nargs="?", const="", metavar="PARTITION", help="job arrays by submitit")
    add("--max-parallel", type=int, metavar="N", help="most runs at once, wherever")
    add("--cpus", type=int, default=1, metavar="N", help="cores of a run on Ray or SLURM")
    add("--gpus", type=int, default=0, metavar="N", help="GPUs of a run on Ray or SLURM")
    add("--minutes", type=int, default=240, metavar="N", help="time limit of a run on SLURM")
    add("--device", default="cpu", help="cpu (default), cuda, cuda:1 …")
    add("--nice", type=int, nargs="?", const=19, default=0, metavar="N",
        help="let others on this machine go first")  # fmt: skip
    failing = parser.add_argument_group("what becomes of runs that fail")
    add = failing.add_argument
    add("--retry-failed", action="store_true", help="try those again that failed before")
    add("--retries", type=int, default=2, metavar="N",
        help="attempts after a worker's death (default: 2)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Show how grids stand, or compute one."""
    if args.what == "status":
        return _status(args.results or args.out, as_json=args.json)
    if args.results is not None:
        raise ValueError(f"RESULTS must follow `status` only; use --out {args.results}")
    return _sweep(args)


def _status(results: Path, *, as_json: bool) -> int:
    from depthpde.records.index.index import Index
    from depthpde.records.record import read_grids
    from depthpde.sweeps.board import table, to_dict
    from depthpde.sweeps.status import cell_statuses

    read = read_grids(results)
    grids, unread = read.by_name, read.broken
    if unread and not grids:
        raise ValueError("; ".join(each.reason for each in unread))
    if not grids:
        raise FileNotFoundError(
            f"{results} must hold a sweep's grids, got none; run: depthpde sweep placement --out "
            f"{results}"
        )
    index = Index(results, outside=True)
    found = {name: (grid, cell_statuses(grid, index)) for name, grid in grids.items()}
    for each in unread:
        print(f"unread: {each.reason}", file=sys.stderr)
    if as_json:
        payload = {"results": str(results), "grids": [to_dict(*each) for each in found.values()]}
        print(json.dumps(payload | {"unread": {str(each.path): each.reason for each in unread}}))
    else:
        print("\n\n".join(table(*each) for each in found.values()))
    return 0


def _sweep(args: argparse.Namespace) -> int:
    from depthpde.data.catalog import default_data
    from depthpde.records.protocols.steps import GateError
    from depthpde.sweeps.board import table, to_dict
    from depthpde.sweeps.executor import Folders
    from depthpde.sweeps.status import cell_statuses
    from depthpde.sweeps.study import compute_study

    plan = _plan(args)
    _check(args)
    folders = Folders(args.out, args.data or default_data(), args.prepared)
    stages = [plan] if plan.study is None else []

    def run(stage: Plan) -> SweepOutcome:
        if plan.study is not None:
            stages.append(stage)
        return _compute(stage, folders, args)

    if plan.study is None:
        outcome = run(plan)
    else:
        try:
            outcome = compute_study(plan, run, args.out, seeds=args.seeds, log=_log)
        except GateError as error:
            print(f"depthpde sweep: {error}", file=sys.stderr)
            return 1
    grid = stages[-1].grid
    cells = cell_statuses(grid, args.out)
    if args.json:
        print(json.dumps(to_dict(grid, cells) | {"interrupted": outcome.interrupted}))
        return outcome.exit_code
    if not sys.stderr.isatty():  # there the board still stands
        print(table(grid, cells))
    counts = (
        f"{outcome.recorded} computed, {outcome.skipped} were there, {len(outcome.failed)} failed"
    )
    print(f"{counts} → {args.out}", file=sys.stderr)
    for why in outcome.left.values():
        print(f"left: {why}", file=sys.stderr)
    if outcome.interrupted:
        print("interrupted; saved: the same command goes on", file=sys.stderr)
    elif outcome.failed:
        print("--retry-failed tries those again", file=sys.stderr)
    elif outcome.waiting:
        print(f"{outcome.waiting} wait for their data: the same command goes on", file=sys.stderr)
    else:
        print(f"see: depthpde report {args.out}", file=sys.stderr)
    return outcome.exit_code


def _compute(plan: Plan, folders: Folders, args: argparse.Namespace) -> SweepOutcome:
    from depthpde.sweeps.board import TerminalBoard
    from depthpde.sweeps.compute import compute

    with TerminalBoard(plan.grid, args.out) as board:
        return compute(
            plan,
            _executor(folders, args, board),
            retries=args.retries,
            retry_failed=args.retry_failed,
            log=_log,
            callback=lambda ended: board.look(),
        )


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _plan(args: argparse.Namespace) -> Plan:
    from depthpde.errors import check_name, check_one_of, check_positive
    from depthpde.papers.registry import EXPERIMENTS
    from depthpde.sweeps.grid_file import FILES, read_plan
    from depthpde.sweeps.scale import Scale

    if args.seeds is not None:
        check_positive("--seeds", args.seeds)
    if args.what.endswith(FILES):
        if args.scale:
            raise ValueError(
                "`--scale` must be left out for a grid of your own, got "
                f"{args.scale!r}; the file says it"
            )
        return read_plan(Path(args.what), seeds=args.seeds, tasks=args.tasks)
    name = check_name("NAME", args.what, [*EXPERIMENTS, "status"])
    scale = check_one_of("--scale", args.scale or Scale.MINI, Scale)
    EXPERIMENTS[name].check_scale(scale)
    return EXPERIMENTS[name].plan(scale, seeds=args.seeds, tasks=args.tasks)


def _check(args: argparse.Namespace) -> None:
    from depthpde.errors import check_positive, check_range

    for name in ("max_parallel", "cpus", "minutes"):
        if getattr(args, name) is not None:
            check_positive(f"--{name.replace('_', '-')}", getattr(args, name))
    for name, high in (("retries", 100), ("gpus", 1024), ("nice", 19), ("workers", 4096)):
        if getattr(args, name) is not None:
            check_range(f"--{name}", getattr(args, name), 0, high)
    chosen = [name for name in ("workers", "ray", "slurm") if getattr(args, name) is not None]
    if len(chosen) > 1:
        raise ValueError(f"`--{chosen[0]}` must stand alone, got --{chosen[1]} too; choose one")


def _executor(folders: Folders, args: argparse.Namespace, board: TerminalBoard) -> Executor:
    most = args.max_parallel
    if args.ray is not None:
        from depthpde.sweeps.clusters.ray_cluster import RayCluster

        return RayCluster(
            folders, args.ray, slots=most, cpus=args.cpus, gpus=args.gpus, device=args.device
        )
    if args.slurm is not None:
        from depthpde.sweeps.clusters.slurm import Slurm

        return Slurm(
            folders, args.slurm, slots=most, minutes=args.minutes, cpus=args.cpus,
            gpus=args.gpus, device=args.device,
        )  # fmt: skip
    from depthpde.sweeps.pool import cores, local_executor

    workers = cores() if args.workers is None else args.workers
    return local_executor(
        folders, min(workers, most or 4096), nice=args.nice, device=args.device, look=board.look
    )
