"""Executor: where runs are computed, what each one can do; InProcess, the simplest."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from depthpde.data.reader import default_out
from depthpde.locks import lock_file
from depthpde.records.record import State, is_recorded
from depthpde.runs.execute import BusyError, ensure_prepared, execute
from depthpde.runs.failure import explain
from depthpde.runs.run import RunConfig
from depthpde.training.interruption import CAUGHT

if TYPE_CHECKING:
    from depthpde.runs.stages import StageCallback


class AttemptEnd(StrEnum):
    """How an attempt at a run ended."""

    RECORDED = "recorded"
    """Its result is there, whatever it says."""
    FAILED = "failed"
    """An error; the same again would end the same."""
    DIED = "died"
    """Its process or machine is gone; another attempt goes on from the last checkpoint."""
    BUSY = "busy"
    """Another process is computing it."""
    INTERRUPTED = "interrupted"
    """Asked to stop; saved."""
    LEFT = "left"
    """Asked to stop, and still computed where the sweep cannot reach it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The end of one attempt."""

    run: str
    """Id of the run."""
    end: AttemptEnd
    why: str = ""
    """In words, where it is not recorded."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where runs find their data and leave their records.

    >>> folders = dp.Folders(Path("out/results"), data=Path("official-files"))
    """

    results: Path
    """The results folder."""
    data: Path | None = None
    """Official files, for tasks that are not prepared yet."""
    prepared: Path | None = None
    """Prepared tasks; the user's cache folder if not given."""

    def to_dict(self) -> dict[str, str | None]:
        """Return the folders as plain JSON values."""
        return {
            "results": str(self.results),
            "data": None if self.data is None else str(self.data),
            "prepared": None if self.prepared is None else str(self.prepared),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Folders:
        """Return the folders that `to_dict` wrote."""
        data, prepared = (values[key] for key in ("data", "prepared"))
        return cls(Path(values["results"]), data and Path(data), prepared and Path(prepared))


class Executor(Protocol):
    """Where runs are computed, several at once. Nothing it does raises for one bad run."""

    @property
    def folders(self) -> Folders:
        """Where its runs find their data and leave their records."""

    @property
    def local(self) -> bool:
        """Whether its runs read the tasks that this machine has prepared."""

    @property
    def slots(self) -> int:
        """How many runs it can be given at a time."""

    def start(self, run: RunConfig) -> None:
        """Take a run; there is a free slot."""

    def wait(self, seconds: float) -> list[Attempt]:
        """Return what has ended since, waiting at most so long for the first."""

    def drop(self, run: str) -> None:
        """Give up one run that shows no life; `wait` reports its end."""

    def stop(self) -> None:
        """Make all runs save and end; `wait` still reports each end."""

    def close(self) -> None:
        """Let go of everything; what still runs is ended."""


class InProcess:
    """This process, one run after the other.

    >>> here = dp.InProcess(dp.Folders(Path("out/results")))

    Args:
        folders: Where.
        device: Where a run's tensors live.
        callback: Called with the model at the start of a stage; returns that of its updates.
        log: Called with anything unusual.
    """

    slots = 1
    local = True

    def __init__(
        self,
        folders: Folders,
        *,
        device: str = "cpu",
        callback: StageCallback | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.folders, self.device, self.callback, self.log = folders, device, callback, log
        self._run: RunConfig | None = None

    def start(self, run: RunConfig) -> None:
        """Take a run; `wait` computes it."""
        self._run = run

    def wait(self, seconds: float) -> list[Attempt]:
        """Compute the run, however long it takes; a signal ends it, and is passed on."""
        run, self._run = self._run, None
        if run is None:
            return []
        before = {each: signal.signal(each, signal.default_int_handler) for each in CAUGHT}
        try:
            ended = run_attempt(
                run, self.folders, device=self.device, callback=self.callback, log=self.log
            )
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
        if ended.end is AttemptEnd.INTERRUPTED:
            signal.raise_signal(signal.SIGINT)
        return [ended]

    def drop(self, run: str) -> None:
        """Nothing to give up: `wait` returns when the run has ended."""

    def stop(self) -> None:
        """Do nothing: a signal reaches the run itself."""

    def close(self) -> None:
        """Nothing to let go of."""


def run_attempt(
    run: RunConfig,
    folders: Folders,
    *,
    device: str = "cpu",
    callback: StageCallback | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Attempt:
    """Compute a run and return how it ended; every executor ends in this call.

    Args:
        run: What.
        folders: Where.
        device: Where its tensors live.
        callback: Called at the start of every stage; returns the callback of its updates.
        log: Called with anything unusual.
    """
    try:
        prepare_once(run, folders, log)
        record = execute(
            run,
            folders.results,
            data=folders.data,
            prepared=folders.prepared,
            device=device,
            callback=callback,
            log=log,
        )
    except BusyError as error:
        return Attempt(run.id, AttemptEnd.BUSY, str(error))
    except KeyboardInterrupt:
        return Attempt(run.id, AttemptEnd.INTERRUPTED, "interrupted")
    except Exception as error:  # a failing run never stops the rest
        return Attempt(run.id, AttemptEnd.FAILED, explain(error, folders.results))
    if record.state is State.INTERRUPTED:
        return Attempt(run.id, AttemptEnd.INTERRUPTED, "interrupted; saved")
    return Attempt(run.id, AttemptEnd.RECORDED)


def prepare_all(
    runs: Sequence[RunConfig], folders: Folders, log: Callable[[str], None]
) -> list[RunConfig]:
    """Prepare the tasks of all runs before any starts, and return the runs that have their data.

    A task without data is logged once, and its runs are not marked as failed: the command goes on
    when they are there. A run with a record needs none.

    Args:
        runs: All of the plan.
        folders: Where data are looked for, and records.
        log: Called with what is prepared, and what cannot be.
    """
    ready, tasks = [], {}
    for run in runs:
        task = run.task, run.protocol
        if is_recorded(folders.results, run.id):
            ready.append(run)
            continue
        if task not in tasks:
            tasks[task] = _why_not(run, folders, log)
        if tasks[task] is None:
            ready.append(run)
    lacking = {name: why for (name, _), why in tasks.items() if why is not None}
    if lacking and not ready:
        raise next(iter(lacking.values()))
    for name, why in lacking.items():
        log(f"without {name}, which cannot be prepared: {why}")
    return ready


def _why_not(
    run: RunConfig, folders: Folders, log: Callable[[str], None]
) -> OSError | ValueError | None:
    try:
        prepare_once(run, folders, log)
    except (OSError, ValueError) as error:
        return error
    return None


def prepare_once(run: RunConfig, folders: Folders, log: Callable[[str], None]) -> None:
    """Prepare the run's task if nobody has; others on this machine wait for it."""
    place = folders.prepared or default_out()
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".preparing").open("w") as handle:
        lock_file(handle, wait=True)
        ensure_prepared(run, folders.data, folders.prepared, log)
