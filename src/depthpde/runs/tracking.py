"""Runs in the trackers people look at; never needed for anything else, and never a network.

with tracker("wandb", "out/wandb", run="first") as sink:
    replay(record, sink)                                a run that is recorded
    train(model, split, config, callback=follow(sink))  a run while it goes
    Doctor(model, sink=sink)                            its health, beside the curves
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any

from depthpde.errors import check_name, import_optional
from depthpde.records.record import Record
from depthpde.training.history import History, Point
from depthpde.training.loop import StepCallback

Sink = Callable[[int, Mapping[str, float]], None]
"""Takes the numbers of one update by name."""
EXTRA = "track"
MOST_PARAMS = 100
"""How many settings MLflow takes at once."""


def tracker(
    library: str,
    folder: str | Path,
    *,
    run: str,
    project: str = "depthpde",
    title: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> AbstractContextManager[Sink]:
    """Open a run in a tracker on this machine; what comes back takes an update and its numbers.

    >>> with dp.tracker("tensorboard", "out/tensorboard", run="first") as sink:
    ...     sink(1, {"train/loss": 2.5})

    Args:
        library: ``tensorboard``, ``trackio``, ``wandb`` (offline, unless ``$WANDB_MODE`` says
            otherwise) or ``mlflow`` (a file store, unless ``$MLFLOW_TRACKING_URI`` says otherwise).
        folder: Of the library's files, shared by runs that are looked at together; trackio has a
            place of its own, ``$TRACKIO_DIR``.
        run: Its id; a run that is resumed is continued where the library can.
        project: Shared by runs that are looked at together.
        title: What the run is called; its id unless given.
        config: Settings shown beside it.
    """
    check_name("library", library, TRACKERS)
    opened = TRACKERS[library]
    return opened(Path(folder), project, run, title or run, dict(config or {}))


@contextmanager
def _tensorboard(
    folder: Path, project: str, run: str, title: str, config: dict[str, Any]
) -> Iterator[Sink]:
    """Write event files; ``tensorboard --logdir`` is given the folder of all runs."""
    import_optional("tensorboard", "the tracker", EXTRA)
    library: Any = import_optional("torch.utils.tensorboard", "the tracker", EXTRA)
    with library.SummaryWriter(str(folder / run)) as writer:

        def write(update: int, numbers: Mapping[str, float]) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, update)

        yield write


@contextmanager
def _trackio(
    folder: Path, project: str, run: str, title: str, config: dict[str, Any]
) -> Iterator[Sink]:
    """Write into trackio's own place; a run of that name is continued."""
    library: Any = import_optional("trackio", "the tracker", EXTRA)
    with redirect_stdout(sys.stderr):  # it greets, where --json promises one object
        opened = library.init(
            project=project,
            name=title,
            config=config,
            resume="allow",
            embed=False,
            auto_log_cpu=False,
            auto_log_gpu=False,
        )
    try:
        yield lambda update, numbers: opened.log(dict(numbers), step=update)
    finally:
        with redirect_stdout(sys.stderr):
            library.finish()  # its own, else it ends once more, aloud, with the process


@contextmanager
def _wandb(
    folder: Path, project: str, run: str, title: str, config: dict[str, Any]
) -> Iterator[Sink]:
    """Write an offline run, which ``wandb sync`` sends; one that is resumed writes a second."""
    library: Any = import_optional("wandb", "the tracker", EXTRA)
    folder.mkdir(parents=True, exist_ok=True)  # else it writes into the temporary folder
    # Numbers alone: no machine statistics, no source code, no output of the terminal.
    settings = library.Settings(
        silent=True, console="off", x_disable_stats=True, x_disable_meta=True, disable_git=True
    )
    opened = library.init(
        project=project,
        name=title,
        group=run,
        dir=str(folder),
        mode=os.environ.get("WANDB_MODE", "offline"),
        config=config,
        settings=settings,
    )
    code = 1
    try:
        yield lambda update, numbers: opened.log(dict(numbers), step=update)
        code = 0
    finally:
        opened.finish(exit_code=code)


@contextmanager
def _mlflow(
    folder: Path, project: str, run: str, title: str, config: dict[str, Any]
) -> Iterator[Sink]:
    """Write into a file store, which MLflow keeps but no longer extends; a run is continued."""
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # it refuses one otherwise
    library: Any = import_optional("mlflow", "the tracker", EXTRA)
    client = library.MlflowClient(
        tracking_uri=os.environ.get("MLFLOW_TRACKING_URI") or folder.resolve().as_uri()
    )
    known = client.get_experiment_by_name(project)
    experiment = client.create_experiment(project) if known is None else known.experiment_id
    same = client.search_runs([experiment], f"tags.`depthpde.run` = '{run}'")
    tags = {"depthpde.run": run}
    opened = same[0] if same else client.create_run(experiment, run_name=title, tags=tags)
    own = opened.info.run_id
    entities = library.entities
    params = [entities.Param(key, str(value)) for key, value in _flat(config).items()]
    for first in range(0, len(params), MOST_PARAMS):
        client.log_batch(own, params=params[first : first + MOST_PARAMS])

    def write(update: int, numbers: Mapping[str, float]) -> None:
        now = round(1000 * time.time())
        sent = [
            entities.Metric(re.sub(r"[^\w\-. :/]", "_", name), value, now, update)
            for name, value in numbers.items()
        ]
        client.log_batch(own, metrics=sent)

    end = "FAILED"
    try:
        yield write
        end = "FINISHED"
    finally:
        client.set_terminated(own, end)


TRACKERS: dict[
    str, Callable[[Path, str, str, str, dict[str, Any]], AbstractContextManager[Sink]]
] = {
    "tensorboard": _tensorboard,
    "trackio": _trackio,
    "wandb": _wandb,
    "mlflow": _mlflow,
}


def replay(record: Record, sink: Sink) -> int:
    """Send a recorded run to a sink, in order, and return how many lines were sent."""
    sent = [
        (each["update"], numbers_of(each)) for each in (*record.points(), *record.validations())
    ]
    test = None if record.result is None else record.result.get("test")
    if record.result is not None and test is not None:
        scores = {f"test/{key}": float(test[key]) for key in ("accuracy", "loss")}
        sent.append((record.result["update"], scores))
    for update, numbers in sorted(sent, key=lambda line: line[0]):
        sink(update, numbers)
    return len(sent)


def follow(sink: Sink) -> StepCallback:
    """Return a watch that sends a run's points and validations to a sink as they come.

    What a resumed run remembers from before is not sent again.
    """
    sent: dict[str, int] = {}

    def callback(history: History, now: Point) -> None:
        for kind, those in (("point", history.points), ("validation", history.validations)):
            before = sum(each.update < now.update for each in those) if kind not in sent else 0
            for each in those[sent.get(kind, before) :]:
                sink(each.update, numbers_of({"kind": kind, **asdict(each)}))
            sent[kind] = len(those)

    return callback


def numbers_of(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of one line of a record under the names that are shown."""
    group = "train" if line["kind"] == "point" else "validation"
    plain = {
        f"{group}/{name}": float(value)
        for name, value in line.items()
        if name not in ("kind", "update") and isinstance(value, int | float)
    }
    return plain | {f"ratio/{name}": float(each) for name, each in line.get("ratios", {}).items()}


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return nested settings under dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        inner = _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else None
        found |= {f"{before}{name}": value} if inner is None else inner
    return found
