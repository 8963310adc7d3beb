"""The local pool: workers with their share of the cores, and what becomes of one that dies."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.models.config import ModelConfig
from depthpde.records.record import State, read_record, read_records
from depthpde.runs.execute import execute
from depthpde.sweeps import worker
from depthpde.sweeps.executor import AttemptEnd, Folders
from depthpde.sweeps.pool import Pool
from depthpde.sweeps.sweep import sweep


def seeds(run, count):
    return [replace(run, seed=seed) for seed in range(count)]


def endless(run, seed=0):
    long = {"updates": 10**6, "checkpoint_every": 10**6, "evaluate_every": 10**6}
    return replace(run, seed=seed, training=replace(run.training, **long))


def statuses(results):
    return {each.id: each.status for each in read_records(results).found.values()}


def finish(pool, count):
    ended = []
    while len(ended) < count:
        ended += pool.wait(60)
    return ended


def test_workers_compute_what_this_process_does_with_the_threads_of_the_run_and_serve_many(
    run, prepared, tmp_path
):
    runs = seeds(run, 3)
    results = tmp_path / "pool"
    pool = Pool(Folders(results, None, prepared), 2, nice=3)
    niceness: dict[int, int] = {}

    def callback(ended):
        for output in statuses(results).values():
            if "pid" in output:
                niceness[output["pid"]] = os.getpriority(os.PRIO_PROCESS, output["pid"])

    assert sweep(runs, pool, results, callback=callback).recorded == 3
    threads = [each.environment["threads"] for each in read_records(results).found.values()]
    assert threads == [1] * 3  # whatever the number of workers: the bits depend on it
    assert 1 <= len(niceness) <= 2
    assert set(niceness.values()) == {os.getpriority(os.PRIO_PROCESS, 0) + 3}
    for each in runs:
        here = execute(each, tmp_path / "here", prepared=prepared)
        there = read_record(results / "runs" / each.id)
        assert there.points() == here.points()
        assert there.result["start"] == here.result["start"]
        assert there.predictions().tolist() == here.predictions().tolist()


class Assassin:
    """Kills the worker of one run whenever it is seen computing, so many times."""

    def __init__(self, results, run, times, monkeypatch):
        self.results, self.run, self.left = results, run.id, times
        self.dead: set[int] = set()
        monkeypatch.setattr("depthpde.sweeps.sweep.TICK", 0.05)

    def __call__(self, ended):
        output = statuses(self.results).get(self.run, {})
        if self.left and output.get("state") == "running" and output["pid"] not in self.dead:
            os.kill(output["pid"], signal.SIGKILL)
            self.dead.add(output["pid"])
            self.left -= 1


def test_a_worker_that_is_killed_loses_its_attempt_and_nothing_else(
    run, prepared, tmp_path, monkeypatch
):
    longer = {"updates": 40, "checkpoint_every": 20, "evaluate_every": 40}
    runs = seeds(replace(run, training=replace(run.training, **longer)), 3)
    pool = Pool(Folders(tmp_path, None, prepared), 1, threads=1)
    assassin = Assassin(tmp_path, runs[1], 1, monkeypatch)
    outcome = sweep(runs, pool, tmp_path, callback=assassin)
    assert (outcome.recorded, outcome.failed) == (3, {})
    assert [statuses(tmp_path)[each.id]["attempts"] for each in runs] == [1, 2, 1]


def test_a_run_whose_workers_are_all_killed_ends_as_failed_and_says_how(
    run, prepared, tmp_path, monkeypatch
):
    pool = Pool(Folders(tmp_path, None, prepared), 1, threads=1)
    long = endless(run)
    outcome = sweep(
        [long], pool, tmp_path, retries=1, callback=Assassin(tmp_path, long, 9, monkeypatch)
    )
    assert "the worker ended by SIGKILL (out of memory?)" in outcome.failed[long.id]
    assert outcome.failed[long.id].endswith("tried 2 times")
    record = read_record(tmp_path / "runs" / long.id)
    assert record.state is State.FAILED
    assert record.status["error"] == outcome.failed[long.id]


def test_a_disk_that_takes_no_more_fails_the_run_and_the_rest_goes_on(run, prepared, tmp_path):
    large = replace(run, model=ModelConfig(dim=64, blocks=1, heads=2))
    runs = [large, *seeds(run, 1)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    pool = Pool(Folders(tmp_path, None, prepared), 1, threads=1)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, before[1]))  # workers inherit it
        outcome = sweep(runs, pool, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert outcome.recorded == 1
    assert "File too large" in outcome.failed[large.id]
    assert "free the disk" in outcome.failed[large.id]
    assert read_record(tmp_path / "runs" / large.id).state is State.FAILED


def test_a_worker_that_cannot_start_is_told_as_death_with_its_last_words(
    run, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    pool = Pool(Folders(tmp_path), 1)
    pool.start(run)
    (ended,) = finish(pool, 1)
    pool.close()
    assert (ended.run, ended.end) == (run.id, AttemptEnd.DIED)
    assert "its last words" in ended.why


def test_workers_end_with_the_pool(run, prepared, tmp_path):
    pool = Pool(Folders(tmp_path, None, prepared), 1, threads=1)
    pool.start(endless(run))
    folder = tmp_path / "runs" / endless(run).id
    while not (folder / "metrics.jsonl").exists():
        assert not pool.wait(0.05)
    worker = read_record(folder).status["pid"]
    pool.close()
    assert read_record(folder).state is State.INTERRUPTED
    assert not Path(f"/proc/{worker}").exists()


def test_a_pool_needs_workers(tmp_path):
    with pytest.raises(ValueError, match="`workers` must be at least 1, got 0"):
        Pool(Folders(tmp_path), 0)


@pytest.mark.parametrize(("asked", "got"), [("3", 3), ("2,1", 2), ("", 1), ("many", 1)])
def test_the_persons_own_number_of_threads_is_respected(asked, got, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    pool = Pool(Folders(tmp_path), workers=10_000)
    assert pool.threads == got
    assert Pool(Folders(tmp_path), workers=1, threads=5).threads == 5


def test_a_nice_worker_is_a_nice_session():
    """Linux weighs sessions first: niceness inside of one alone would give way to nobody."""
    script = (
        "import os; from depthpde.sweeps import worker; before = os.nice(0);"
        "worker.step_back(7); own = worker.AUTOGROUP;"
        "print(os.nice(0) - before, own.read_text().split()[-1] if own.exists() else os.nice(0),"
        " os.nice(0))"
    )
    call = [sys.executable, "-c", script]
    done = subprocess.run(call, capture_output=True, text=True, start_new_session=True, check=True)
    added, session, reached = map(int, done.stdout.split())
    assert (added, session) == (7, reached)


def test_a_worker_is_nice_where_no_session_can_be(monkeypatch, tmp_path):
    monkeypatch.setattr(worker, "AUTOGROUP", tmp_path / "none" / "autogroup")
    monkeypatch.setattr(worker.os, "nice", lambda more: 3 + more)
    worker.step_back(2)
    assert not (tmp_path / "none").exists()
