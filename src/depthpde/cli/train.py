"""``depthpde train``: one model on one task, from its settings to its record."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from depthpde.records.record import Record
    from depthpde.runs.run import RunConfig
    from depthpde.training.config import TrainingConfig
    from depthpde.training.history import History, Point
    from depthpde.training.loop import StepCallback

SUMMARY = "train one model on one task: resumable to the bit, recorded in plain files"
EXAMPLES = """examples:
  depthpde train listops-mini --position after_embedding
  depthpde train text-mini --position after_embedding --layer multiscale --seed 1
  depthpde train image-mini --set training.learning_rate=1e-3 --set model.dim=64
  depthpde train listops-mini --doctor
  depthpde train text-mini --pretrain masked --print_config > run.json
  depthpde train --config run.json
  torchrun --nproc-per-node 2 -m depthpde.cli.main train listops-mini

Ctrl-C saves the run, and the same command goes on with it; a finished run is shown, not trained
again. Settings come from --preset, then --config, then the options here, then --set."""
RESULTS = Path("out/results")
LIBRARIES = ("tensorboard", "trackio", "wandb", "mlflow")
"""Those of `runs.tracking`, whose import takes torch."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add = parser.add_argument
    add("task", nargs="?", metavar="TASK", help="see: depthpde data list; or named by --config")
    add("--position", action="append", metavar="NAME", help="where to place it; may be repeated")
    add("--layer", metavar="NAME", help="what to place: diffusion, multiscale, depthwise_conv …")
    add("--preset", metavar="NAME", help="mini (for mini tasks), nystrom-2021, lra-2020 … or none")
    add("--seed", type=int, help="of first weights, order and dropout (default 0)")
    add("--updates", type=int, metavar="N", help="optimizer updates")
    add("--pretrain", metavar="HOW", help="masked or causal, on the task's own inputs; or none")
    add("--protocol", metavar="NAME", help="strict (default) or a legacy one")
    add("--config", type=Path, metavar="FILE", help="settings as .json, .yaml or .toml")
    add("--set", action="append", default=[], metavar="NAME=VALUE", dest="changes",
        help="one setting, such as training.learning_rate=1e-3; may be repeated")  # fmt: skip
    add("--print_config", "--print-config", action="store_true", dest="print_config",
        help="print the settings as --config takes them, and train nothing")  # fmt: skip
    add("--threads", type=int, metavar="N",
        help="threads of its arithmetic (default 1); another number is another run")  # fmt: skip
    add("--compile", action="store_true", help="let torch compile the passes")
    add("--device", default="cpu", help="cpu (default), cuda, cuda:1 …")
    add("--out", type=Path, default=RESULTS, metavar="RESULTS", help=f"default: {RESULTS}")
    add("--data", type=Path, help="folder with the official files")
    add("--prepared", type=Path, help="folder of prepared tasks (default: the user's cache)")
    add("--track", choices=LIBRARIES, help="send curves and the doctor's readings there as well")
    add(
        "--doctor", action="store_true", help="watch its health: verdicts here and in the dashboard"
    )
    add("--json", action="store_true", help="print the result as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Train, or go on with training, or show what is finished."""
    from depthpde.runs.settings import describe

    chosen = _chosen(args)
    if args.print_config:
        print(describe(chosen))
        return 0
    return _train(chosen, args)


def _chosen(args: argparse.Namespace) -> RunConfig:
    from depthpde.data.tasks import TASKS
    from depthpde.runs.settings import NONE, build_run, usual_preset

    settings = {
        "model.positions": args.position,
        "model.layer": args.layer,
        "training.updates": args.updates,
        "training.compile": args.compile or None,
        "seed": args.seed,
        "threads": args.threads,
        "protocol": args.protocol,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    if args.pretrain == "none":
        given["pretraining"] = None
    elif args.pretrain is not None:
        given["pretraining.objective"] = args.pretrain
    if args.preset is None and args.config is None and args.task in TASKS:
        name = usual_preset(args.task)
        if name != "mini":
            print(
                f"settings of the preset {name}; --preset names another, {NONE} for none",
                file=sys.stderr,
            )
    chosen = build_run(
        args.task, preset_name=args.preset, file=args.config, settings=given, changes=args.changes
    )
    if args.layer is not None and not chosen.model.positions:
        raise ValueError(
            "`--layer` says what is placed, but nothing is placed; add --position after_embedding"
        )
    return chosen


def _train(chosen: RunConfig, args: argparse.Namespace) -> int:
    from depthpde.errors import check_folder
    from depthpde.records.record import RESULT, run_folder
    from depthpde.runs.distributed import execute_distributed, joined, own_device
    from depthpde.runs.execute import BusyError

    device = own_device(_device(args.device))
    _check_tracker(args.track)
    check_folder("--out", args.out)
    known = (run_folder(args.out, chosen.id) / RESULT).is_file()
    with ExitStack() as stack:
        processes = stack.enter_context(joined(device))
        shown = stack.enter_context(ExitStack())

        def log(line: str) -> None:
            if processes.leads and not known:
                print(line, file=sys.stderr, flush=True)

        def callback(model: nn.Module, stage: TrainingConfig) -> StepCallback:
            shown.close()  # of the stage before
            return _watch(model, stage, chosen, args, shown) if processes.leads else _nothing

        log(f"{chosen.task} · {chosen.label} · seed {chosen.seed} · run {chosen.id}")
        try:
            record = execute_distributed(
                chosen, args.out, data=args.data, prepared=args.prepared, device=device,
                callback=callback, log=log,
            )  # fmt: skip
        except BusyError as error:
            raise ValueError(f"{error}; wait for it, or stop it") from error
    return 0 if record is None else _tell(record, known, args)


def _watch(
    model: nn.Module,
    stage: TrainingConfig,
    chosen: RunConfig,
    args: argparse.Namespace,
    stack: ExitStack,
) -> StepCallback:
    """Return the callback of every update: the progress, and trackers if there are any.

    Tracker and doctor follow the training, not the stage before it: both count from 0.
    """
    from depthpde.runs.tracking import Sink, follow, tracker
    from depthpde.training.progress import Progress

    callbacks: list[StepCallback] = []
    if not args.json:
        callbacks.append(stack.enter_context(Progress(model, stage)))
    main = stage is chosen.training
    sink: Sink | None = None
    if args.track and main:
        opened = tracker(
            args.track,
            args.out / args.track,
            run=chosen.id,
            project=f"depthpde-{chosen.task}",
            title=f"{chosen.label}, seed {chosen.seed}, {chosen.id}",
            config=chosen.to_dict(),
        )
        sink = stack.enter_context(opened)
        callbacks.append(follow(sink))
    if args.doctor and main:
        from depthpde.doctor.alarms.callbacks import FILE
        from depthpde.doctor.alarms.live import Doctor
        from depthpde.records.record import run_folder

        path = run_folder(args.out, chosen.id) / FILE
        callbacks.append(stack.enter_context(Doctor(model, path=path, sink=sink)))

    def callback(history: History, now: Point) -> None:
        for each in callbacks:
            each(history, now)

    return callback


def _check_tracker(name: str | None) -> None:
    """Refuse a tracker that is not installed, before anything is computed."""
    from depthpde.errors import import_optional

    if name is not None and find_spec(name) is None:
        import_optional(name, f"`--track {name}`", "track")


def _nothing(history: History, now: Point) -> None:
    """Tell nobody: the leader does."""


def _tell(record: Record, known: bool, args: argparse.Namespace) -> int:
    """Print how the run stands, and return the exit code."""
    from depthpde.records.record import State

    state = record.state
    if args.json:
        payload = {"id": record.id, "folder": str(record.folder), "state": state.value}
        print(json.dumps(payload | {"config": record.config, "result": record.result}))
    elif state is State.INTERRUPTED:
        at = record.status.get("stage", record.status)  # a stage before it has a name
        where = f"update {at['update']} of {at['updates']}"
        before = f"{at['name']}, " if "name" in at else ""
        print(f"interrupted at {before}{where}, saved; the same command goes on with it")
    else:
        print("\n".join(_lines(record, known)))
    return 128 + int(record.status.get("signal", 2)) if state is State.INTERRUPTED else 0


def _lines(record: Record, known: bool) -> list[str]:
    result = record.result
    assert result is not None, "neither interrupted nor finished"
    name = f"{record.task} · {record.label} · seed {record.seed}"
    lines = [f"{name}{' · finished before, not trained again' if known else ''}"]
    if result["status"] == "diverged":
        lines.append(f"diverged: {result['reason']}")
    if result["test"] is not None:
        lines.append(
            f"test       {_test(result['test'], record.task, record.config.get('source'))}"
        )
        lines += _trivial(result)
    if result["validation"] is not None:
        best = result["validation"]
        lines.append(f"validation {best['accuracy']:.1f} %, the best, at update {best['update']}")
    lines.append(
        f"updates    {result['update']:,} ({result['status']}) in {result['seconds']:.0f} s, "
        f"{result['tokens_per_second']:,.0f} tokens/s"
    )
    return [*lines, f"record     {record.folder}"]


def _test(test: Mapping[str, Any], task: str, source: str | None) -> str:
    """Return the accuracy with the half-width of its 95 % interval for drawing the examples."""
    from depthpde.data.lookup import find_task

    half = _half_width(test)
    found = f"{test['accuracy']:.1f} % ± {half:.1f} of {test['targets']:,}"
    if find_task(task, source).kind == "language":
        return f"{found} next bytes, {test['loss'] / 0.6931471805599453:.3f} bits a byte"
    return found


def _trivial(result: Mapping[str, Any]) -> list[str]:
    """Return the lines that need no reading, and whether the test accuracy is clearly past."""
    least = result["test"]["accuracy"] - _half_width(result["test"])
    found = [
        f"{name} {line:.1f} % ({'passed' if least > line else 'not passed'})"
        for name, line in sorted(result["trivial"].items(), key=lambda item: item[1])
    ]
    return [f"trivial    {', '.join(found)}"] if found else []


def _half_width(test: Mapping[str, Any]) -> float:
    share, count = test["accuracy"] / 100.0, test["targets"]
    return float(196.0 * (share * (1.0 - share) / count) ** 0.5)


def _device(name: str) -> str:
    import torch

    try:
        kind = torch.device(name).type
    except RuntimeError as error:
        raise ValueError(f"`--device` must be cpu or cuda, got {name!r}") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"`--device` must be one that is here, got {name!r}; use --device cpu")
    return name
