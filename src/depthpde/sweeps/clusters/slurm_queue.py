"""What SLURM's queue says about jobs: squeue alone, so a cluster without accounting will do."""

from __future__ import annotations

import os
import subprocess

PATIENCE = 20.0
"""Seconds that squeue is given to answer."""
ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "SPECIAL_EXIT", "TIMEOUT",
}  # fmt: skip
"""States of a job that will not run again by itself."""


def queue_states(name: str) -> dict[str, str] | None:
    """Return the state of this user's jobs, those that ended a while ago among them.

    Args:
        name: Of the jobs.

    Returns:
        Job id, ``ARRAY_TASK`` for a task of an array → state such as ``RUNNING``; None where squeue
        does not answer, which says nothing about any job.
    """
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T"]
    command += [f"--user={os.getuid()}", f"--name={name}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    pairs = (line.strip().partition("|") for line in done.stdout.splitlines() if line.strip())
    return {job: state for job, _, state in pairs}
