"""execute(run, results) → Record: one run, from its config to its record."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depthpde.data.catalog import folder_of, prepare
from depthpde.data.lookup import find_task
from depthpde.data.reader import Split, default_out, read_manifest, read_split
from depthpde.data.source import digest
from depthpde.data.task import SPLITS
from depthpde.data.writer import MANIFEST
from depthpde.files import PARTIAL, place_folder, read_json, write_json, write_whole
from depthpde.layers.multiscale import MultiscaleDiffusion
from depthpde.layers.ratio import BoundedRatio
from depthpde.locks import lock_file
from depthpde.models.config import ModelConfig
from depthpde.records.integrity.checksums import seal
from depthpde.records.record import (
    CONFIG,
    ENVIRONMENT,
    FINISHED,
    FORMAT,
    METRICS,
    PREDICTIONS,
    RESULT,
    STATUS,
    UNREADABLE,
    Record,
    State,
    read_record,
    run_folder,
)
from depthpde.runs.corruption import some_examples
from depthpde.runs.environment import describe_environment, remember_environments
from depthpde.runs.examine import examine
from depthpde.runs.failure import terminable
from depthpde.runs.heartbeat import Heartbeat
from depthpde.runs.readings import OpenTest, check_readings, read_again
from depthpde.runs.run import RunConfig
from depthpde.runs.stages import CHECKPOINTS, StageCallback, run_stages
from depthpde.threads import threads
from depthpde.training.config import TrainingConfig
from depthpde.training.evaluate import Evaluation, evaluate
from depthpde.training.history import History, Point, Status
from depthpde.training.loop import StepCallback

MODEL, LOCK = "model", ".lock"
PRETRAINING, PROBE = "pretraining.jsonl", "probe.json"


class BusyError(RuntimeError):
    """Another process is computing this run."""


def execute(
    run: RunConfig,
    results: Path,
    *,
    data: Path | None = None,
    prepared: Path | None = None,
    device: str = "cpu",
    callback: StageCallback | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Record:
    """Compute one run and write its record; go on where it stood, or return it if it is there.

    A process holds the run's lock while it computes, so a run is computed once however many try
    for it. The test split is read once, when the training has ended. A signal ends it between two
    updates with the state ``interrupted``; an error is noted as ``failed`` and raised.

    >>> run = dp.build_run("listops-mini", settings={"training.updates": 2, "model.dim": 16})
    >>> record = dp.execute(run, Path("out/results"))

    Args:
        run: What to compute.
        results: The results folder; made if absent.
        data: Folder with the official files, for a task that is not prepared yet.
        prepared: Folder of prepared tasks; the user's cache folder if not given.
        device: Where the model and its batches live: cpu, cuda, cuda:1 …
        callback: Called at the start of every stage; returns the callback of its updates.
        log: Called with anything unusual, one line at a time.
    """
    check_readings(run)
    folder = run_folder(results, run.id)
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder):
        # Asked under the lock: another process may have finished the run while this one waited.
        if (folder / RESULT).is_file():
            log(f"{run.id} is finished; its record is shown")
            return read_record(folder)
        _sweep_partial(folder)
        if _was_finished(folder):
            log(f"{run.id} was finished, but its result is missing; it is computed again")
        values = {"format": FORMAT, "id": run.id, "label": run.label, "config": run.to_dict()}
        write_json(folder / CONFIG, values)
        count = run.threads or 1
        with terminable(), threads(count), Heartbeat(folder, run.training.updates) as heartbeat:
            here = remember_environments(folder / ENVIRONMENT, describe_environment())
            write_json(folder / ENVIRONMENT, here)
            place = ensure_prepared(run, data, prepared, log)
            notes = _thread_notes(here)

            def open_test(name: str) -> Split:
                """Prepare another task where it is not, for a reading of its test split."""
                other = replace(run, task=name, recipe=None, model=ModelConfig(), transfer=None)
                return read_split(ensure_prepared(other, data, prepared, log), "test")

            _compute(run, folder, place, heartbeat, notes, device, callback, log, open_test)
        return read_record(folder)


def ensure_prepared(
    run: RunConfig,
    data: Path | None,
    prepared: Path | None,
    log: Callable[[str], None] = lambda line: None,
) -> Path:
    """Return the prepared folder of a run's task, preparing the task if it is not there."""
    place = folder_of(run.about.stored_as, prepared or default_out(), run.protocol)
    current = run.about.generator
    if run.recipe != current:
        raise ValueError(
            f"`recipe` must be {current} for {run.task}, got {run.recipe}: the task's data have "
            "changed since; build the config again"
        )
    if not (place / MANIFEST).exists() or read_manifest(place).get("generator") != current:
        log(f"preparing {run.task}")
        task = find_task(run.task, run.source)
        prepare(task, data=data, out=prepared, protocol=run.protocol, log=log)
    return place


def _compute(
    run: RunConfig,
    folder: Path,
    place: Path,
    heartbeat: Heartbeat,
    notes: list[str],
    device: str,
    callback: StageCallback | None,
    log: Callable[[str], None],
    open_test: OpenTest,
) -> None:
    splits = {name: read_split(place, name) for name in SPLITS}
    if run.examples is not None:
        splits["train"] = some_examples(splits["train"], run.examples)
    model = run.build().to(device)
    before: list[History] = []

    def listen(model: nn.Module, stage: TrainingConfig) -> StepCallback:
        """Write a stage's curve while it grows, and pass it to the callback."""
        metrics = _Metrics(folder / (METRICS if stage is run.training else PRETRAINING))
        inner = callback(model, stage) if callback is not None else None

        def look(history: History, now: Point) -> None:
            if stage is run.training:
                heartbeat.reach(history.update)
            else:
                heartbeat.pretrain(history.update, stage.updates)
            metrics.follow(history)
            if inner is not None:
                inner(history, now)

        return look

    history = run_stages(
        run, model, splits, folder, callback=listen, log=log, pretrained=before.append
    )
    _Metrics(folder / METRICS).follow(history)
    heartbeat.update = history.update
    if history.status is Status.INTERRUPTED:
        heartbeat.state, heartbeat.signal = State.INTERRUPTED, history.signal
        return
    # The result comes last of all files: it is what says that a run is finished, and it holds the
    # checksums of the others. Checkpoints go after it, so a run that is killed here resumes.
    found = _judge(model, splits["test"], 2 * run.training.batch_size)
    if found is not None and found.predictions is not None:
        write_whole(folder / PREDICTIONS, found.predictions.numpy().astype(np.uint8).tobytes())
    partial = folder / f".{MODEL}{PARTIAL}{os.getpid()}"
    model.save_pretrained(partial)  # type: ignore[operator]
    place_folder(partial, folder / MODEL, (folder / CONFIG).stat().st_mode & 0o777)
    history.notes += notes
    if found is not None:
        _examine(model, splits["test"], folder, history.notes)
    result = _result(run, place, model, (*before, history), found)
    if found is not None:
        result |= read_again(model, splits["test"], run, open_test)
    write_json(folder / RESULT, seal(folder, result, _sealed_names(folder)))
    heartbeat.state = State(history.status.value)
    for each in folder.glob(f"{CHECKPOINTS}*"):
        shutil.rmtree(each, ignore_errors=True)


def _sealed_names(folder: Path) -> list[str]:
    """Return the files that a result vouches for: all that the run itself has written."""
    weights = [f"{MODEL}/{each.name}" for each in (folder / MODEL).iterdir()]
    return [CONFIG, ENVIRONMENT, METRICS, PRETRAINING, PREDICTIONS, PROBE, *weights]


def _sweep_partial(folder: Path) -> None:
    """Remove what a process that was killed was writing; the lock is held, so nobody writes now."""
    for each in folder.glob(f".*{PARTIAL}*"):
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink(missing_ok=True)


def _was_finished(folder: Path) -> bool:
    """Return whether the status of a run without a result speaks of one."""
    try:
        return read_json(folder / STATUS).get("state") in FINISHED
    except UNREADABLE:
        return False


def _thread_notes(environment: dict[str, Any]) -> list[str]:
    """Describe in the record that a run was not computed with one number of threads throughout."""
    now = environment["threads"]
    before = sorted({each.get("threads") for each in environment.get("earlier", [])} - {now, None})
    listed = ", ".join(str(each) for each in before)
    return (
        [f"begun with {listed} threads, ended with {now}: its last bits may differ"]
        if listed
        else []
    )


def _judge(model: nn.Module, split: Split, batch_size: int) -> Evaluation | None:
    """Read the test split once; None where the weights are no numbers any more."""
    if not all(bool(torch.isfinite(each).all()) for each in model.state_dict().values()):
        return None
    found = evaluate(model, split, batch_size=batch_size)
    return found if np.isfinite(found.loss) else None


def _examine(model: nn.Module, split: Split, folder: Path, notes: list[str]) -> None:
    """Measure the finished model; where it cannot be, its record says why."""
    try:
        write_json(folder / PROBE, examine(model, split))
    except (ValueError, TypeError, RuntimeError) as error:
        notes.append(f"not examined: {error}")


def _result(
    run: RunConfig,
    place: Path,
    model: nn.Module,
    stages: Sequence[History],
    found: Evaluation | None,
) -> dict[str, Any]:
    """Describe what came of a run; what it took is that of the training, the last of its stages."""
    *before, history = stages
    best = history.best
    return {
        "format": FORMAT,
        "id": run.id,
        "status": history.status.value,
        "update": history.update,
        "reason": history.reason,
        "test": None
        if found is None
        else {
            "accuracy": found.accuracy,
            "loss": found.loss,
            "targets": found.targets,
            "correct": round(found.accuracy * found.targets / 100),
        },
        "validation": None
        if best is None
        else {"accuracy": best.accuracy, "loss": best.loss, "update": best.update},
        "ratios": {
            name: _values(each())
            for name, each in model.named_modules()
            if isinstance(each, BoundedRatio)
        },
        "weights": {
            name: _values(each.weights)
            for name, each in model.named_modules()
            if isinstance(each, MultiscaleDiffusion)
        },
        "seconds": history.seconds,
        "tokens": history.tokens,
        "tokens_per_second": history.tokens_per_second,
        "pretraining": {
            "update": before[0].update,
            "seconds": before[0].seconds,
            "tokens": before[0].tokens,
        }
        if before
        else None,
        "peak_memory_bytes": _peak_memory(),
        "parameters": sum(each.numel() for each in model.parameters()),
        "trivial": trivial_lines(place),
        "data": {"manifest_sha256": digest(place / MANIFEST)},
        "start": history.start,
        "notes": history.notes,
    }


def trivial_lines(place: Path) -> dict[str, float]:
    """Return what needs no reading, in percent, from a task's manifest.

    The largest class of the test split, and the shallow cues of the task where it has some.
    """
    manifest = read_manifest(place)
    shares = manifest["splits"]["test"].get("label_shares") or {}
    majority = {"majority": 100.0 * max(shares.values())} if shares else {}
    return majority | {
        str(name).replace("_", " "): float(each)
        for name, each in manifest["facts"].get("baselines", {}).items()
    }


def _values(values: Tensor) -> list[float]:
    return [float(each) for each in values.detach().flatten()]


def _peak_memory() -> int:
    """Return the largest memory of this process so far, the runs before it included."""
    if sys.platform == "win32":
        return 0  # it has no such count
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold a run; the operating system lets go of it when the process ends, however it ends."""
    with (folder / LOCK).open("w") as handle:
        if not lock_file(handle, wait=False):
            raise BusyError(f"{folder} is being computed by another process")
        yield


class _Metrics:
    """The curve on disk, kept equal to the history."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written: tuple[int, int] | None = None

    def follow(self, history: History) -> None:
        """Append what is new; the first time, write anew what a checkpoint remembers."""
        now = (len(history.points), len(history.validations))
        if now == self.written:
            return
        points, validations = self.written or (0, 0)
        lines = [{"kind": "point", **asdict(each)} for each in history.points[points:]]
        lines += [
            {"kind": "validation", **asdict(each)} for each in history.validations[validations:]
        ]
        lines.sort(key=lambda line: line["update"])
        text = "".join(json.dumps(line) + "\n" for line in lines)
        if self.written is None:
            write_whole(self.path, text)
        else:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(text)
        self.written = now
