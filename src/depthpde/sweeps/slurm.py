"""SLURM as a place for runs: job arrays by submitit, on a file system that all nodes see."""

from __future__ import annotations

import time
from typing import Any

from depthpde.runs.run import RunConfig
from depthpde.sweeps.executor import Attempt, AttemptEnd, Folders, run_attempt

JOBS = ".slurm"
"""Where submitit keeps its files inside the results folder."""
UNLIMITED = 10_000


class Slurm:
    """Runs as the tasks of job arrays; one that is preempted or runs out of time is requeued.

    Runs given together become one array. A requeued run goes on from its last checkpoint.

    Args:
        folders: Where; on a file system that the nodes see.
        partition: The partition to submit to; the default one if empty.
        slots: Most tasks of an array at once.
        minutes: Time limit of one run.
        cpus: Cores of each run.
        gpus: GPUs of each run.
        device: Where a run's tensors live.
        cluster: ``slurm``; or ``local``, which runs the same jobs as processes here.
    """

    slots = UNLIMITED
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
        self.folders = Folders(
            folders.results.absolute(),
            folders.data and folders.data.absolute(),
            folders.prepared and folders.prepared.absolute(),
        )
        self.device = device
        try:
            self.executor = self.submitit.AutoExecutor(
                self.folders.results / JOBS / "%j", cluster=cluster
            )
        except RuntimeError as error:
            raise ValueError(
                f"`--slurm` must be called where jobs can be submitted ({error}); log in to the "
                "cluster, or use --workers or --ray"
            ) from error
        parameters: dict[str, Any] = {"name": "depthpde", "timeout_min": minutes}
        parameters |= {"cpus_per_task": cpus, "slurm_array_parallelism": slots or UNLIMITED}
        parameters |= {"gpus_per_node": gpus} if gpus else {}
        parameters |= {"slurm_partition": partition} if partition else {}
        self.executor.update_parameters(**parameters)
        self._waiting: list[RunConfig] = []
        self._jobs: dict[str, Any] = {}
        self._stopped: list[Attempt] = []

    def start(self, run: RunConfig) -> None:
        """Note a run; `wait` submits what was noted as one array."""
        self._waiting.append(run)

    def wait(self, seconds: float) -> list[Attempt]:
        """Submit what waits, and return what ended."""
        if self._waiting:
            self._submit()
        stopped, self._stopped = self._stopped, []
        ended = stopped + [self._end(run) for run in list(self._jobs) if self._jobs[run].done()]
        if not ended:
            time.sleep(seconds)
        return ended

    def stop(self) -> None:
        """Cancel all jobs: SLURM sends SIGTERM, on which a run saves and ends."""
        for run, job in self._jobs.items():
            job.cancel()
            self._stopped.append(Attempt(run, AttemptEnd.INTERRUPTED, "cancelled"))
        self._stopped += [
            Attempt(each.id, AttemptEnd.INTERRUPTED, "cancelled") for each in self._waiting
        ]
        self._jobs.clear()
        self._waiting.clear()

    def close(self) -> None:
        """Cancel what is left."""
        self.stop()

    def _submit(self) -> None:
        runs, self._waiting = self._waiting, []
        task = _Task(self.folders.to_dict(), self.device)
        jobs = self.executor.map_array(task, [each.to_dict() for each in runs])
        self._jobs |= {run.id: job for run, job in zip(runs, jobs, strict=True)}

    def _end(self, run: str) -> Attempt:
        job = self._jobs.pop(run)
        try:
            said = job.result()
        except self.submitit.core.utils.UncompletedJobError as error:
            lines = str(error).strip().splitlines()
            return Attempt(
                run, AttemptEnd.DIED, f"job {job.job_id}: {lines[0] if lines else 'ended'}"
            )
        return Attempt(run, AttemptEnd(said["end"]), said["why"])


class _Task:
    """What a job of the array does; submitit asks it for a successor when its time is up."""

    def __init__(self, folders: dict[str, Any], device: str) -> None:
        self.folders, self.device = folders, device

    def __call__(self, values: dict[str, Any]) -> dict[str, str]:
        """Compute a run."""
        run = RunConfig.from_dict(values)
        ended = run_attempt(run, Folders.from_dict(self.folders), device=self.device)
        return {"end": ended.end.value, "why": ended.why}

    def checkpoint(self, values: dict[str, Any]) -> Any:
        """Return the same again: the run's own checkpoints say where it stands."""
        return _submitit().helpers.DelayedSubmission(self, values)


def _submitit() -> Any:
    try:
        import submitit
    except ImportError as error:
        raise ValueError("`--slurm` needs submitit: pip install 'depthpde[slurm]'") from error
    return submitit
