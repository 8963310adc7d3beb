"""SLURM as a place for runs: job arrays by submitit, on a file system that all nodes see.

The sweep alone submits again what was preempted, ran out of time or died: jobs are marked as not
to be requeued, and what submitit would requeue by itself ends as interrupted. A job leaves a small
file that says how its run ended; squeue tells of those that could not.
"""

from __future__ import annotations

import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthpde.files import read_json, write_json
from depthpde.runs.run import RunConfig
from depthpde.sweeps.clusters.slurm_queue import ENDED, queue_states
from depthpde.sweeps.executor import Attempt, AttemptEnd, Folders, run_attempt

JOBS = ".slurm"
"""Where submitit keeps its files inside the results folder."""
NAME = "depthpde"
"""Of the jobs."""
UNLIMITED = 10_000
POLL = 5.0
"""Seconds between two looks at the queue: it serves a whole cluster."""
SETTLE = 10.0
"""Seconds that a shared file system is given to show the last file of a job that left the queue."""
GRACE = 60.0
"""Seconds that cancelled jobs are waited for."""


@dataclass(slots=True)
class _Submitted:
    """A job on its way."""

    job: Any
    ending: Path
    """The file that will say how its run ended."""
    since: float
    gone: float | None = None
    """When the queue was first seen without it."""
    dropped: str = ""
    """Why it was given up, if it was."""


class Slurm:
    """Runs as the tasks of job arrays; the sweep submits again what was preempted or timed out.

    Runs given together become one array. A run that is taken up again goes on from its last
    checkpoint.

    Args:
        folders: Where; on a file system that the nodes see.
        partition: The partition to submit to; the default one if empty.
        slots: Most runs at once.
        minutes: Time limit of one attempt.
        cpus: Cores of each run.
        gpus: GPUs of each run.
        device: Where a run's tensors live.
        cluster: ``slurm``; or ``local``, which runs the same jobs as processes here.
    """

    local = False

    def __init__(
        self,
        folders: Folders,
        partition: str = "",
        *,
        slots: int | None = None,
        minutes: int = 240,
        cpus: int = 1,
        gpus: int = 0,
        device: str = "cpu",
        cluster: str = "slurm",
    ) -> None:
        self.submitit = _submitit()
        # the sweep counts what is on its way: each array has a limit of its own, several have none
        self.slots = slots or UNLIMITED
        self.folders = Folders(
            folders.results.absolute(),
            folders.data and folders.data.absolute(),
            folders.prepared and folders.prepared.absolute(),
        )
        self.device, self._queued = device, cluster == "slurm"
        try:
            self.executor = self.submitit.AutoExecutor(
                self.folders.results / JOBS / "%j", cluster=cluster
            )
        except RuntimeError as error:
            raise ValueError(
                f"`--slurm` must be called where jobs can be submitted ({error}); log in to the "
                "cluster, or use --workers or --ray"
            ) from error
        parameters: dict[str, Any] = {"name": NAME, "timeout_min": minutes, "cpus_per_task": cpus}
        parameters |= {"slurm_array_parallelism": self.slots}
        parameters |= {"slurm_additional_parameters": {"no_requeue": True}}
        parameters |= {"gpus_per_node": gpus} if gpus else {}
        parameters |= {"slurm_partition": partition} if partition else {}
        self.executor.update_parameters(**parameters)
        self._waiting: list[RunConfig] = []
        self._jobs: dict[str, _Submitted] = {}
        self._states: dict[str, str] | None = None
        self._asked = 0.0
        self._stopped: float | None = None

    def start(self, run: RunConfig) -> None:
        """Note a run; `wait` submits what was noted as one array."""
        self._waiting.append(run)

    def wait(self, seconds: float) -> list[Attempt]:
        """Submit what waits, and return what ended."""
        if self._stopped is not None:
            cancelled, self._waiting = self._waiting, []
            return [_cancelled(run.id) for run in cancelled] + self._ended(seconds)
        if self._waiting:
            self._submit()
        return self._ended(seconds)

    def drop(self, run: str) -> None:
        """Cancel one run that shows no life."""
        submitted = self._jobs[run]
        submitted.job.cancel(check=False)
        submitted.dropped = f"job {submitted.job.job_id} showed no life and was cancelled"

    def stop(self) -> None:
        """Cancel all jobs: SLURM sends SIGTERM, on which a run saves and ends."""
        if self._stopped is None:
            self._stopped = time.monotonic()
            for submitted in self._jobs.values():
                submitted.job.cancel(check=False)

    def close(self) -> None:
        """Cancel what is left."""
        self.stop()

    def _submit(self) -> None:
        runs, self._waiting = self._waiting, []
        endings = [self.folders.results / JOBS / f"end-{uuid.uuid4().hex}.json" for _ in runs]
        task = _Task(self.folders.to_dict(), self.device)
        values = [run.to_dict() for run in runs]
        jobs = self.executor.map_array(task, values, [str(each) for each in endings])
        now = time.monotonic()
        for run, job, ending in zip(runs, jobs, endings, strict=True):
            self._jobs[run.id] = _Submitted(job, ending, now)

    def _ended(self, seconds: float) -> list[Attempt]:
        now = time.monotonic()
        if self._queued and self._jobs and now - self._asked > POLL:
            self._states, self._asked = queue_states(NAME), now
        found = [self._end(run, each) for run, each in self._jobs.items()]
        ended = [each for each in found if each is not None]
        for each in ended:
            del self._jobs[each.run]
        if not ended:
            time.sleep(seconds)
        return ended

    def _end(self, run: str, submitted: _Submitted) -> Attempt | None:
        """Say how a run ended; None while nobody can know."""
        # a local job is this process's child: it has ended when its process has, not its run
        if submitted.ending.exists() and (self._queued or submitted.job.done()):
            answer = read_json(submitted.ending)
            submitted.ending.unlink()
            ended = Attempt(run, AttemptEnd(answer["end"]), str(answer["why"]))
            if ended.end is AttemptEnd.INTERRUPTED and self._stopped is None:
                # requeued by hand, it would run beside its successor
                submitted.job.cancel(check=False)
            return ended
        job = submitted.job.job_id
        if submitted.dropped:
            return Attempt(run, AttemptEnd.DIED, submitted.dropped)
        state = self._left_the_queue(submitted)
        if state is not None:
            end = AttemptEnd.DIED if self._stopped is None else AttemptEnd.INTERRUPTED
            return Attempt(run, end, f"job {job}: {state}")
        if self._stopped is not None and time.monotonic() - self._stopped > GRACE:
            return Attempt(run, AttemptEnd.LEFT, f"job {job} goes on; `scancel {job}` ends it")
        return None

    def _left_the_queue(self, submitted: _Submitted) -> str | None:
        """Return in which state a job is over, or None while it may still run."""
        if not self._queued:
            return "its process is gone" if submitted.job.done() else None
        if self._states is None or self._asked <= submitted.since:
            return None
        state = self._states.get(submitted.job.job_id, "gone from the queue")
        if state not in (*ENDED, "gone from the queue"):
            submitted.gone = None
            return None
        submitted.gone = submitted.gone or time.monotonic()
        return state if time.monotonic() - submitted.gone > SETTLE else None


class _Task:
    """What a job of the array does."""

    def __init__(self, folders: dict[str, Any], device: str) -> None:
        self.folders, self.device = folders, device

    def __call__(self, values: dict[str, Any], ending: str) -> None:
        """Compute a run, and write how it ended."""
        run = RunConfig.from_dict(values)
        # submitit ignores SIGTERM and requeues the job on SIGUSR2, its warning before the time is
        # up; both must make the run save and end, for the sweep is the one that submits again
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.signal(signal.SIGUSR2, lambda *came: signal.raise_signal(signal.SIGTERM))
        try:
            ended = run_attempt(run, Folders.from_dict(self.folders), device=self.device)
        except KeyboardInterrupt:
            ended = Attempt(run.id, AttemptEnd.INTERRUPTED, "preempted or out of time")
        write_json(Path(ending), {"end": ended.end.value, "why": ended.why})


def _cancelled(run: str) -> Attempt:
    return Attempt(run, AttemptEnd.INTERRUPTED, "cancelled")


def _submitit() -> Any:
    try:
        import submitit
    except ImportError as error:
        raise ValueError("`--slurm` needs submitit: pip install 'depthpde[slurm]'") from error
    return submitit
