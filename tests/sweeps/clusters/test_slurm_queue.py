"""A real SLURM without accounting: requeued, cancelled and killed jobs lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace

import pytest

from depthpde.records.record import State, read_record
from depthpde.sweeps.clusters.slurm_queue import ENDED, queue_states
from depthpde.sweeps.executor import Folders, InProcess
from depthpde.sweeps.sweep import sweep
from sweeps.clusters.slurm_cluster import absent, ask, one_node

pytest.importorskip("submitit")

from depthpde.sweeps.clusters.slurm import NAME, Slurm


def test_where_squeue_does_not_answer_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert queue_states(NAME) is None, "no such command"
    command = tmp_path / "squeue"
    command.write_text("#!/bin/sh\nexit 1\n")
    command.chmod(0o755)
    assert queue_states(NAME) is None, "the controller is away"
    command.write_text("#!/bin/sh\nprintf '7_0|RUNNING\\n7_1|PENDING\\n\\n'\n")
    assert queue_states(NAME) == {"7_0": "RUNNING", "7_1": "PENDING"}
    command.write_text("#!/bin/sh\nsleep 9\n")
    monkeypatch.setattr("depthpde.sweeps.clusters.slurm_queue.PATIENCE", 0.1)
    assert queue_states(NAME) is None, "it takes too long"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if absent():
        pytest.skip(absent())
    with one_node(tmp_path_factory.mktemp("slurm")):
        yield


def longer(run, updates=2500, **training):
    chosen = {"updates": updates, "evaluate_every": updates, "checkpoint_every": 20} | training
    return replace(run, training=replace(run.training, **chosen))


class Trouble:
    """Does something to the job of a run each time its updates have advanced."""

    def __init__(self, folder, deeds, *, gap=40):
        self.folder, self.deeds, self.gap = folder, list(deeds), gap
        self.last, self.most, self.ends = 0, 0, []
        self.limit = time.monotonic() + 900  # a bound for a loaded machine, no expectation

    def __call__(self, ended):
        assert time.monotonic() < self.limit, ask("squeue", "--states=all")
        if ended is not None:
            self.ends.append(ended.end.value)
        states = queue_states(NAME) or {}
        going = [job for job, state in states.items() if state == "RUNNING"]
        self.most = max(self.most, len(going))
        if not self.deeds or not going or not (self.folder / "status.json").exists():
            return
        record = read_record(self.folder)
        made = int(record.status.get("update", 0))
        if record.state is State.RUNNING and made > self.last + self.gap:
            self.last = made
            self.deeds.pop(0)(going[0], record)


def requeue(job, record):
    ask("scontrol", "update", f"jobid={job}", "requeue=1")
    ask("scontrol", "requeue", job)


def cancel(job, record):
    ask("scancel", job)


def kill(job, record):
    os.kill(record.status["pid"], signal.SIGKILL)


def no_job_runs_any_more():
    """Return the states of all jobs once none is on its way; a process may take a while to end."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        states = queue_states(NAME) or {}
        if set(states.values()) <= ENDED:
            return states
        time.sleep(1)
    raise AssertionError(f"an orphan: {ask('squeue', '--states=all')}")


@pytest.mark.drill
@pytest.mark.parametrize(
    ("deeds", "lost"), [([requeue] * 3, 0), ([cancel, cancel], 0), ([kill, kill], 2)]
)
def test_a_run_goes_on_whatever_happens_to_its_jobs(
    cluster, run, prepared, tmp_path, deeds, lost, tally
):
    run = longer(run)
    folder = tmp_path / "slurm" / "runs" / run.id
    before = queue_states(NAME) or {}
    trouble = Trouble(folder, deeds)
    place = Slurm(Folders(tmp_path / "slurm", None, prepared), slots=1, minutes=10)
    outcome = sweep([run], place, tmp_path / "slurm", retries=1, callback=trouble)
    assert (outcome.recorded, outcome.failed, outcome.exit_code) == (1, {}, 0), trouble.ends
    assert trouble.deeds == [], "everything was done to it"
    assert trouble.ends.count("died") == lost
    assert trouble.most == 1, "never two jobs at a time"
    new = no_job_runs_any_more().keys() - before.keys()
    assert len(new) == 1 + len(deeds), "one owner submits again, and only once"
    name = deeds[0].__name__
    tally(f"A real SLURM: {name} of a running job", len(deeds), "the run went on, no orphan job")
    if deeds[0] is not requeue:
        return
    sweep([run], InProcess(Folders(tmp_path / "here", None, prepared)), tmp_path / "here")
    here = tmp_path / "here" / "runs" / run.id
    weights = "model/model.safetensors"
    assert (here / weights).read_bytes() == (folder / weights).read_bytes()
    assert (read_record(here).predictions() == read_record(folder).predictions()).all()


@pytest.mark.drill
def test_a_job_warned_that_its_time_is_up_saves_and_goes_on(
    cluster, run, prepared, tmp_path, tally
):
    run = longer(run)
    warn = [lambda job, record: ask("scancel", "--signal=USR2", job)]
    trouble = Trouble(tmp_path / "runs" / run.id, warn)
    place = Slurm(Folders(tmp_path, None, prepared), slots=1, minutes=10)
    outcome = sweep([run], place, tmp_path, retries=1, callback=trouble)
    assert (outcome.recorded, trouble.deeds) == (1, [])
    assert trouble.ends == ["interrupted", "recorded"]
    tally("A real SLURM: the warning before the time limit", 1, "saved, and went on")


@pytest.mark.drill
def test_leaving_a_sweep_leaves_no_job_behind(cluster, run, prepared, tmp_path, tally):
    runs = [longer(replace(run, seed=seed), 10**6) for seed in range(3)]
    asked = []

    def callback(ended):
        if not asked and (tmp_path / "runs" / runs[0].id / "metrics.jsonl").exists():
            asked.append(os.kill(os.getpid(), signal.SIGINT))

    place = Slurm(Folders(tmp_path, None, prepared), minutes=10)
    outcome = sweep(runs, place, tmp_path, callback=callback)
    assert (outcome.exit_code, outcome.left) == (130, {})
    assert read_record(tmp_path / "runs" / runs[0].id).state is State.INTERRUPTED
    left = subprocess.run(["squeue", "--noheader"], capture_output=True, text=True).stdout
    assert left.strip() == ""
    tally("A real SLURM: the sweep is left", 1, "runs saved, no job left")
