"""Runs in TensorBoard and trackio, for those who look there; never needed for anything else.

with tensorboard("out/tensorboard/RUN") as sink:
    replay(record, sink)                                a run that is recorded
    train(model, split, config, callback=follow(sink))  a run while it goes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from depthpde.records.record import Record
from depthpde.training.history import History, Point
from depthpde.training.loop import StepCallback

Sink = Callable[[int, Mapping[str, float]], None]
"""Takes the numbers of one update by name."""


@contextmanager
def tensorboard(folder: str | Path) -> Iterator[Sink]:
    """Give a sink that writes TensorBoard's event files into a folder.

    Args:
        folder: Of this run alone; ``tensorboard --logdir`` is given the one above it.
    """
    library = _library("tensorboard", "torch.utils.tensorboard")
    with library.SummaryWriter(str(folder)) as writer:

        def write(update: int, numbers: Mapping[str, float]) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, update)

        yield write


@contextmanager
def trackio(project: str, name: str, *, config: Mapping[str, Any] | None = None) -> Iterator[Sink]:
    """Give a sink that writes into a project of trackio on this machine.

    It lies where ``$TRACKIO_DIR`` says; ``trackio show --project`` shows it.

    Args:
        project: Shared by runs that are looked at together.
        name: Of this run; one that is there is gone on with.
        config: Plain values shown beside it.
    """
    run = _library("trackio", "trackio").init(
        project=project,
        name=name,
        config=dict(config or {}),
        resume="allow",
        embed=False,
        auto_log_cpu=False,
        auto_log_gpu=False,
    )
    try:
        yield lambda update, numbers: run.log(dict(numbers), step=update)
    finally:
        run.finish()


def replay(record: Record, sink: Sink) -> int:
    """Send a recorded run to a sink, in order, and return how many lines were sent."""
    sent = [
        (each["update"], numbers_of(each)) for each in (*record.points(), *record.validations())
    ]
    test = None if record.result is None else record.result.get("test")
    if record.result is not None and test is not None:
        said = {f"test/{key}": float(test[key]) for key in ("accuracy", "loss")}
        sent.append((record.result["update"], said))
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


def _library(package: str, module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"`{package}` must be installed to send runs there; use pip install {package}, or "
            "read the run's own files, which need nothing"
        ) from error
