"""The local pool: processes of their own, each with its share of the cores."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from depthpde.errors import check_positive
from depthpde.runs.run import RunConfig
from depthpde.sweeps.executor import Attempt, AttemptEnd, Executor, Folders, InProcess

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
GRACE = 60.0
"""Seconds a worker is given to save before it is killed."""


class Pool:
    """Several processes on this machine; one that dies loses nothing but its attempt.

    Every worker gets its number of threads before it imports torch: ``$OMP_NUM_THREADS`` where
    it is set, else cores // workers, so that all cores are used and none twice.

    >>> pool = dp.Pool(dp.Folders(Path("out/results")), workers=2)
    >>> pool.close()

    Args:
        folders: Where.
        workers: How many processes; no more than there are cores is of use.
        nice: How far the workers step back for others on the machine, 0 to 19.
        threads: Of each worker; ``$OMP_NUM_THREADS`` or its share of the cores unless given.
        device: Where a run's tensors live.
    """

    local = True

    def __init__(
        self,
        folders: Folders,
        workers: int,
        *,
        nice: int = 0,
        threads: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.slots = check_positive("workers", workers)
        self.folders, self.options = folders, ["--nice", str(nice), "--device", device]
        self.threads = threads or _asked_threads() or max(1, cores() // workers)
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._stopping = False

    def start(self, run: RunConfig) -> None:
        """Give a run to a worker that has none, starting one if need be."""
        for worker in self._workers:
            if worker.run is None:
                if worker.give(run):
                    return
                worker.run = None  # it died with nothing to do: no loss
        self._spawn().give(run)  # should it be dead already, `wait` reports it

    def wait(self, seconds: float) -> list[Attempt]:
        """Return what workers answered, and what those that died leave behind."""
        ready = self._selector.select(seconds)
        return [ended for key, _ in ready for ended in self._hear(key.data)]

    def drop(self, run: str) -> None:
        """Kill the worker of one run that shows no life."""
        for worker in self._workers:
            if worker.run == run:
                worker.process.kill()

    def stop(self) -> None:
        """Ask every worker to save and end."""
        self._stopping = True
        for worker in self._workers:
            worker.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End all workers; one that does not end in time is killed."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        self._selector.close()

    def _spawn(self) -> _Worker:
        worker = _Worker.spawn(self.folders, self.threads, self.options)
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        return worker

    def _hear(self, worker: _Worker) -> list[Attempt]:
        line = worker.output.readline()
        if line:
            worker.run = None
            answer = json.loads(line)
            return [Attempt(answer["run"], AttemptEnd(answer["end"]), answer["why"])]
        self._selector.unregister(worker.output)
        self._workers.remove(worker)
        last_words = worker.end()
        if worker.run is None:
            return []
        end = AttemptEnd.INTERRUPTED if self._stopping else AttemptEnd.DIED
        return [Attempt(worker.run, end, last_words)]


@dataclass(slots=True)
class _Worker:
    """One process of the pool."""

    process: subprocess.Popen[str]
    log: IO[str]
    """What it wrote to standard error."""
    run: str | None = None
    """Id of the run it computes."""

    @classmethod
    def spawn(cls, folders: Folders, threads: int, options: list[str]) -> _Worker:
        log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  closed in `end`
        worker = cls(
            subprocess.Popen(
                [sys.executable, "-m", "depthpde.sweeps.worker", *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | dict.fromkeys(THREADS, str(threads)),
                start_new_session=True,  # Ctrl-C is for the sweep, which stops its workers once
            ),
            log,
        )
        worker._tell({"folders": folders.to_dict()})
        return worker

    @property
    def output(self) -> IO[str]:
        assert self.process.stdout is not None, "a pipe"
        return self.process.stdout

    def give(self, run: RunConfig) -> bool:
        """Hand over a run; False where the worker has died."""
        self.run = run.id
        return self._tell({"run": run.to_dict()})

    def _tell(self, values: dict[str, Any]) -> bool:
        assert self.process.stdin is not None, "a pipe"
        try:
            print(json.dumps(values), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return False
        return True

    def end(self) -> str:
        """Close its input, which makes it save and end, and return its last words.

        One that does not end in time is killed.
        """
        assert self.process.stdin is not None, "a pipe"
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.output.close()
        with self.log:
            self.log.seek(0)
            lines = self.log.read().strip().splitlines()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        how += " (out of memory?)" if -code == signal.SIGKILL else ""
        return f"the worker ended {how}" + (f"; its last words: {lines[-1]}" if lines else "")


def local_executor(
    folders: Folders,
    workers: int,
    *,
    nice: int = 0,
    device: str = "cpu",
    look: Callable[[], None] = lambda: None,
) -> Executor:
    """Return the executor for a number of processes on this machine.

    Args:
        folders: Where.
        workers: How many; 0 computes in this process.
        nice: As for a `Pool`.
        device: Where a run's tensors live.
        look: Called after every update that this process computes itself.
    """
    if workers == 0:
        return InProcess(folders, device=device, callback=lambda *stage: lambda *now: look())
    return Pool(folders, workers, nice=nice, device=device)


def _asked_threads() -> int | None:
    """Return the threads that the person's environment names, if it names any."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(asked) if asked.isdigit() and int(asked) > 0 else None


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
