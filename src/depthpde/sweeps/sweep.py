"""sweep(runs, executor): every run recorded once, whatever happens to some of them."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from depthpde.files import write_json
from depthpde.locks import lock_byte, unlock_byte
from depthpde.records.record import (
    CONFIG,
    FINISHED,
    FORMAT,
    RESULT,
    STATUS,
    Record,
    State,
    read_record,
    run_folder,
)
from depthpde.runs.run import RunConfig
from depthpde.sweeps.executor import Attempt, AttemptEnd, Executor
from depthpde.sweeps.lost import LostRuns
from depthpde.training.interruption import Interruption

TICK = 0.5
"""Seconds between two looks at what is going on."""
BACKOFF, LONGEST = 2.0, 60.0
"""Seconds until a run whose worker died, or that another process computes, is tried again: doubled
from one time to the next, up to the longest."""
CLAIMS = ".claims"


@dataclass(slots=True)
class SweepOutcome:
    """What a sweep did."""

    recorded: int = 0
    """Runs that came to their end in this sweep, here or in another one at the same time."""
    skipped: int = 0
    """Runs that were recorded before."""
    failed: dict[str, str] = field(default_factory=dict)
    """Id → why."""
    waiting: int = 0
    """Runs whose data are missing; the same command computes them once they are there."""
    interrupted: bool = False
    """Whether a signal ended it; the same command goes on."""
    left: dict[str, str] = field(default_factory=dict)
    """Id → where it is still computed after the sweep was stopped."""

    @property
    def exit_code(self) -> int:
        """What a command returns: 0, 1 where runs failed or wait, 130 where interrupted."""
        return 130 if self.interrupted else int(bool(self.failed or self.waiting))


def sweep(
    runs: Sequence[RunConfig],
    executor: Executor,
    results: Path,
    *,
    retries: int = 2,
    retry_failed: bool = False,
    callback: Callable[[Attempt | None], None] = lambda ended: None,
) -> SweepOutcome:
    """Compute all runs that have no record yet, in their order.

    A run whose worker dies is taken up again after a pause, `retries` times without an update in
    between: one that is preempted again and again but gets on goes on for ever. One that shows no
    life for `LOST` seconds counts as dead; one that raises is noted as failed, and the rest goes
    on. Each run is claimed before it is given away, so two sweeps in one folder share the work.
    SIGINT and SIGTERM make the runs save and end.

    >>> runs = [dp.build_run("listops-mini", settings={"training.updates": 2, "model.dim": 16})]
    >>> results = Path("out/results")
    >>> outcome = dp.sweep(runs, dp.InProcess(dp.Folders(results)), results)

    Args:
        runs: What.
        executor: Where; closed at the end.
        results: The results folder.
        retries: How often a run whose worker died is tried again.
        retry_failed: Try runs again that failed in an earlier sweep.
        callback: Called with every end, and None twice a second.
    """
    going = _Sweep(executor, results, retries, callback)
    try:
        results.mkdir(parents=True, exist_ok=True)
        for run in runs:
            going.add(run, retry_failed)
        with Interruption() as interruption, Claims(results) as claims:
            while going.waiting or going.flying:
                if interruption.signal:
                    going.stop()
                going.fill(claims)
                going.look(claims)
    finally:
        executor.close()
    return going.outcome


class Claims:
    """Which runs this sweep has taken, known to all sweeps in the folder.

    One byte of one file is locked for each run; the operating system lets go of them when the
    process ends, however it ends.
    """

    def __init__(self, results: Path) -> None:
        self._file = (results / CLAIMS).open("ab")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def take(self, run: str) -> bool:
        """Claim a run; False where another sweep has it."""
        return lock_byte(self._file, _byte(run))

    def release(self, run: str) -> None:
        """Let go of a run."""
        unlock_byte(self._file, _byte(run))


class _Sweep:
    """The runs that wait, those that are computed, and what has come of the others."""

    def __init__(
        self,
        executor: Executor,
        results: Path,
        retries: int,
        callback: Callable[[Attempt | None], None],
    ) -> None:
        self.executor, self.results, self.retries = executor, results, retries
        self.callback = callback
        self.waiting: deque[RunConfig] = deque()
        self.flying: dict[str, RunConfig] = {}
        self.outcome = SweepOutcome()
        self.deaths: Counter[str] = Counter()
        self.not_before: dict[str, float] = {}
        self.busy: Counter[str] = Counter()
        self.shared: set[str] = set()
        self.reached: dict[str, int] = {}
        self.lost = LostRuns(results)

    def add(self, run: RunConfig, retry_failed: bool) -> None:
        """Queue a run, unless its record says that there is nothing to do."""
        record = _record(self.results, run)
        if record is not None and record.state in FINISHED:
            self.outcome.skipped += 1
        elif record is not None and record.state is State.FAILED and not retry_failed:
            self.outcome.failed[run.id] = str(record.status.get("error", ""))
        else:
            self.waiting.append(run)

    def stop(self) -> None:
        """Ask what is computed to save and end; the rest is left for the next time."""
        if not self.outcome.interrupted:
            self.outcome.interrupted = True
            self.waiting.clear()
            self.executor.stop()

    def fill(self, claims: Claims) -> None:
        """Give runs away while there is room."""
        for _ in range(len(self.waiting)):
            if len(self.flying) >= self.executor.slots:
                return
            run = self.waiting.popleft()
            if time.monotonic() < self.not_before.get(run.id, 0.0):
                self.waiting.append(run)
            elif not claims.take(run.id):
                self.shared.add(run.id)
                self.waiting.append(run)
            elif self._settled_elsewhere(run):  # asked after the claim: nobody can end it now
                claims.release(run.id)
            else:
                self.flying[run.id] = run
                self.lost.start(run.id)
                self.executor.start(run)

    def look(self, claims: Claims) -> None:
        """Wait a moment for runs to end, and settle those that did."""
        if not self.flying:
            time.sleep(TICK if self.waiting else 0.0)
        for ended in self.executor.wait(TICK) if self.flying else ():
            run = self.flying.pop(ended.run)
            self._settle(run, ended)
            claims.release(run.id)
        for lost in self.lost.find(list(self.flying)):
            self.executor.drop(lost)
        self.callback(None)

    def _settle(self, run: RunConfig, ended: Attempt) -> None:
        end, why = ended.end, ended.why
        if end is AttemptEnd.BUSY and not self.outcome.interrupted:
            self.shared.add(run.id)
            self.busy[run.id] += 1
            self._later(run, self.busy[run.id])
            return
        if end is AttemptEnd.RECORDED:
            self.outcome.recorded += 1
        elif end is AttemptEnd.FAILED:
            self._fail(run, why)
        elif end is AttemptEnd.LEFT:
            self.outcome.left[run.id] = why
        elif not self.outcome.interrupted:  # died, or interrupted by somebody else
            # Only deaths without progress count: a run that is preempted again and again gets on,
            # one that dies at the same update each time never will.
            if self._got_further(run):
                self.deaths[run.id] = 0
            self.deaths[run.id] += 1
            if self.deaths[run.id] > self.retries:
                self._fail(run, f"{why}; tried {self.deaths[run.id]} times")
            else:
                self._later(run, self.deaths[run.id])
        self.callback(ended)

    def _later(self, run: RunConfig, times: int) -> None:
        """Queue a run again, after a pause that doubles."""
        self.not_before[run.id] = time.monotonic() + min(LONGEST, BACKOFF * 2 ** (times - 1))
        self.waiting.append(run)

    def _got_further(self, run: RunConfig) -> bool:
        """Say whether a run has made updates since its last death."""
        record = _record(self.results, run)
        made = 0 if record is None else int(record.status.get("update", 0))
        before = self.reached.get(run.id, 0)
        self.reached[run.id] = max(made, before)  # a new attempt begins its status at update 0
        return made > before

    def _settled_elsewhere(self, run: RunConfig) -> bool:
        """Say whether another process has brought a run to its end since it was queued."""
        record = _record(self.results, run)
        if record is not None and record.state in FINISHED:
            self.outcome.recorded += 1
            return True
        if record is not None and record.state is State.FAILED and run.id in self.shared:
            self.outcome.failed[run.id] = str(record.status.get("error", ""))
            return True
        return False

    def _fail(self, run: RunConfig, why: str) -> None:
        """Note a failure in the run's folder, where its own process could not."""
        self.outcome.failed[run.id] = why
        record = _record(self.results, run)
        if record is not None and record.state is State.FAILED:
            return
        status = {} if record is None else dict(record.status)
        status |= {"state": State.FAILED.value, "error": why, "updates": run.training.updates}
        config = {"format": FORMAT, "id": run.id, "label": run.label, "config": run.to_dict()}
        folder = run_folder(self.results, run.id)
        if (folder / RESULT).exists():  # a record that cannot be read: its files stay as they are
            return
        with suppress(OSError):  # a folder that takes nothing: the sweep itself says it
            folder.mkdir(parents=True, exist_ok=True)
            if record is None:
                write_json(folder / CONFIG, config)
            write_json(folder / STATUS, status)


def _record(results: Path, run: RunConfig) -> Record | None:
    """Return the run's record; None where there is none, or one that cannot be read."""
    try:
        return read_record(run_folder(results, run.id))
    except (ValueError, OSError):
        return None


def _byte(run: str) -> int:
    return int(run, 16) >> 2  # file offsets have 63 bits
