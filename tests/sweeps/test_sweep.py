"""A sweep records every run once, whatever happens to some of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from depthpde.records.record import FINISHED, State, read_record, read_records
from depthpde.sweeps.executor import Attempt, AttemptEnd, Folders, InProcess
from depthpde.sweeps.sweep import Claims, sweep

SWEEP = """
import json, sys
from pathlib import Path
from depthpde.sweeps.sweep import sweep
from depthpde.sweeps.executor import Folders, InProcess
from depthpde.sweeps.pool import Pool
from depthpde.runs.run import RunConfig
runs = [RunConfig.from_dict(each) for each in json.loads(sys.argv[1])]
folders = Folders(Path(sys.argv[2]), None, Path(sys.argv[3]))
workers = int(sys.argv[4])
place = Pool(folders, workers, threads=1) if workers else InProcess(folders)
outcome = sweep(runs, place, folders.results, callback=lambda e: e and print(e.end, flush=True))
print("outcome", outcome.recorded, outcome.skipped, len(outcome.failed), flush=True)
sys.exit(outcome.exit_code)
"""


def seeds(run, count):
    return [replace(run, seed=seed) for seed in range(count)]


def start(runs, results, prepared, *, workers=0):
    words = [json.dumps([each.to_dict() for each in runs]), str(results), str(prepared)]
    return subprocess.Popen(
        [sys.executable, "-c", SWEEP, *words, str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def until(claim, seconds=300.0):
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)


class Scripted:
    """A place whose runs end as told: id → one end for each attempt."""

    def __init__(self, ends, slots=1):
        self.ends, self.slots = ends, slots
        self.given: list[str] = []
        self.inside: list[str] = []
        self.most = 0
        self.closed = False

    def start(self, run):
        self.given.append(run.id)
        self.inside.append(run.id)
        self.most = max(self.most, len(self.inside))

    def wait(self, seconds):
        first = self.inside.pop(0)
        return [Attempt(first, self.ends[first].pop(0), "so it goes")]

    def stop(self):
        raise AssertionError("nobody sent a signal")

    def close(self):
        self.closed = True


def test_every_run_is_recorded_and_a_second_sweep_has_nothing_to_do(run, prepared, tmp_path):
    runs = seeds(run, 3)
    folders = Folders(tmp_path, None, prepared)
    printed = []
    first = sweep(runs, InProcess(folders), tmp_path, callback=printed.append)
    assert (first.recorded, first.skipped, first.failed, first.exit_code) == (3, 0, {}, 0)
    assert [each.run for each in printed if each] == [each.id for each in runs]
    again = sweep(runs, InProcess(folders), tmp_path)
    assert (again.recorded, again.skipped) == (0, 3)


def test_a_failing_run_never_stops_the_rest_and_is_tried_again_only_when_asked(
    run, prepared, tmp_path
):
    runs = seeds(run, 3)
    blocked = tmp_path / "runs" / runs[1].id
    blocked.mkdir(parents=True)
    (blocked / "checkpoints").write_text("not a folder")
    folders = Folders(tmp_path, None, prepared)
    outcome = sweep(runs, InProcess(folders), tmp_path)
    assert (outcome.recorded, outcome.exit_code) == (2, 1)
    assert "a checkpoint cannot be written" in outcome.failed[runs[1].id]
    assert read_record(blocked).state is State.FAILED
    (blocked / "checkpoints").unlink()
    later = sweep(runs, InProcess(folders), tmp_path)
    assert (later.recorded, later.skipped, list(later.failed)) == (0, 2, [runs[1].id])
    asked = sweep(runs, InProcess(folders), tmp_path, retry_failed=True)
    assert (asked.recorded, asked.skipped, asked.failed) == (1, 2, {})


def test_a_failure_that_the_run_could_not_write_down_is_written_for_it(run, tmp_path):
    place = Scripted({run.id: [AttemptEnd.FAILED]})
    outcome = sweep([run], place, tmp_path)
    record = read_record(tmp_path / "runs" / run.id)
    assert (record.state, record.status["error"]) == (State.FAILED, "so it goes")
    assert outcome.failed == {run.id: "so it goes"}
    assert place.closed


def test_a_folder_that_takes_nothing_is_said_in_the_outcome(run, tmp_path):
    (tmp_path / "runs").write_text("not a folder")
    outcome = sweep([run], InProcess(Folders(tmp_path, None, tmp_path / "prepared")), tmp_path)
    assert "Not a directory" in outcome.failed[run.id]


@pytest.fixture
def hasty(monkeypatch):
    """Pauses and ticks that a test can wait for."""
    monkeypatch.setattr("depthpde.sweeps.sweep.BACKOFF", 0.02)
    monkeypatch.setattr("depthpde.sweeps.sweep.TICK", 0.01)


@pytest.mark.usefixtures("hasty")
def test_a_run_whose_worker_dies_is_tried_again_so_often_and_no_more(run, tmp_path):
    lucky, unlucky = seeds(run, 2)
    ends = {
        lucky.id: [AttemptEnd.DIED, AttemptEnd.DIED, AttemptEnd.RECORDED],
        unlucky.id: [AttemptEnd.DIED] * 3,
    }
    place = Scripted(ends)
    outcome = sweep([lucky, unlucky], place, tmp_path, retries=2)
    assert Counter(place.given) == {lucky.id: 3, unlucky.id: 3}
    assert outcome.recorded == 1
    assert outcome.failed == {unlucky.id: "so it goes; tried 3 times"}


class Preempted(Scripted):
    """A place whose runs die often, and are further along each time."""

    def __init__(self, ends, results):
        super().__init__(ends)
        self.results = results

    def start(self, run):
        super().start(run)
        folder = self.results / "runs" / run.id
        folder.mkdir(parents=True, exist_ok=True)
        config = {"format": 1, "id": run.id, "label": "x", "config": run.to_dict()}
        (folder / "config.json").write_text(json.dumps(config))
        status = {"state": "running", "update": len(self.given), "heartbeat": time.time()}
        (folder / "status.json").write_text(json.dumps(status))


@pytest.mark.usefixtures("hasty")
def test_preemption_is_no_failure_while_the_run_gets_on(run, tmp_path):
    ends = {run.id: [AttemptEnd.DIED] * 9 + [AttemptEnd.RECORDED]}
    outcome = sweep([run], Preempted(ends, tmp_path), tmp_path, retries=2)
    assert (outcome.recorded, outcome.failed) == (1, {})


def test_no_more_runs_are_given_away_than_there_are_slots(run, tmp_path):
    runs = seeds(run, 5)
    place = Scripted({each.id: [AttemptEnd.RECORDED] for each in runs}, slots=3)
    assert sweep(runs, place, tmp_path).recorded == 5
    assert place.most == 3
    assert place.given == [each.id for each in runs]


@pytest.mark.usefixtures("hasty")
def test_a_new_attempt_does_not_take_back_what_was_reached(run, tmp_path):
    place = Preempted({run.id: [AttemptEnd.DIED] * 9}, tmp_path)
    updates = iter((5, 0, 5, 0, 5, 0))  # dies before it is where it was: no progress

    def start(each):
        Scripted.start(place, each)
        folder = tmp_path / "runs" / each.id
        folder.mkdir(parents=True, exist_ok=True)
        config = {"format": 1, "id": each.id, "label": "x", "config": each.to_dict()}
        (folder / "config.json").write_text(json.dumps(config))
        status = {"state": "running", "update": next(updates), "heartbeat": time.time()}
        (folder / "status.json").write_text(json.dumps(status))

    place.start = start
    outcome = sweep([run], place, tmp_path, retries=2)
    assert "tried 3 times" in outcome.failed[run.id]


@pytest.mark.usefixtures("hasty")
def test_the_pause_between_two_attempts_doubles(run, tmp_path, monkeypatch):
    monkeypatch.setattr("depthpde.sweeps.sweep.BACKOFF", 0.1)
    place, when = Scripted({run.id: [AttemptEnd.DIED] * 4}), []
    place.start = lambda each: (when.append(time.monotonic()), Scripted.start(place, each))
    sweep([run], place, tmp_path, retries=3)
    pauses = [after - before for before, after in pairwise(when)]
    assert pauses[0] >= 0.1
    assert pauses[1] >= 0.2
    assert pauses[2] >= 0.4


def test_what_shows_no_life_is_dropped(run, tmp_path, monkeypatch):
    monkeypatch.setattr("depthpde.sweeps.lost.LOOK", 0.0)

    class Silent(Scripted):
        def wait(self, seconds):
            return super().wait(seconds) if self.dropped else []

        def drop(self, run):
            self.dropped.append(run)

    place = Silent({run.id: [AttemptEnd.RECORDED]})
    place.dropped = []
    monkeypatch.setattr("depthpde.sweeps.sweep.LostRuns.find", lambda self, flying: flying)
    assert sweep([run], place, tmp_path).recorded == 1
    assert place.dropped == [run.id]


def test_a_run_that_cannot_be_reached_is_told_as_left(run, tmp_path):
    outcome = sweep([run], Scripted({run.id: [AttemptEnd.LEFT]}), tmp_path)
    assert outcome.left == {run.id: "so it goes"}


@pytest.mark.usefixtures("hasty")
def test_a_run_that_another_process_computes_is_asked_for_again(run, tmp_path):
    place = Scripted({run.id: [AttemptEnd.BUSY, AttemptEnd.BUSY, AttemptEnd.RECORDED]})
    assert sweep([run], place, tmp_path).recorded == 1
    assert len(place.given) == 3


def test_a_claim_holds_between_processes_and_ends_with_its_process(tmp_path):
    script = (
        "import sys, time; from pathlib import Path\n"
        "from depthpde.sweeps.sweep import Claims\n"
        "claims = Claims(Path(sys.argv[1])); print(claims.take('f' * 16), flush=True)\n"
        "time.sleep(60)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout.readline().strip() == "True"
        with Claims(tmp_path) as claims:
            assert not claims.take("f" * 16)
            assert claims.take("e" * 16)
            child.kill()
            child.wait()
            assert claims.take("f" * 16)
            claims.release("f" * 16)


@pytest.mark.drill
def test_two_sweeps_in_one_folder_share_the_work_and_compute_nothing_twice(
    run, prepared, tmp_path, tally
):
    runs = seeds(run, 8)
    both = [start(runs, tmp_path, prepared) for _ in range(2)]
    output = [each.communicate(timeout=300) for each in both]
    assert [each.returncode for each in both] == [0, 0], output
    counts = [list(map(int, out.split("outcome")[1].split())) for out, _ in output]
    assert all(recorded + skipped == 8 and not failed for recorded, skipped, failed in counts)
    records = read_records(tmp_path).found.values()
    assert len(records) == 8
    assert {each.state for each in records} <= FINISHED
    assert Counter(each.status["attempts"] for each in records) == {1: 8}
    tally("Two sweeps at once in one folder, runs", 8, "none computed twice")


@pytest.mark.drill  # the command's own is tried with every change: tests/cli
@pytest.mark.parametrize("workers", [0, 2], ids=["here", "pool"])
def test_ctrl_c_saves_and_the_same_command_goes_on(run, prepared, tmp_path, workers):
    long = {"updates": 200, "checkpoint_every": 200, "evaluate_every": 200}
    runs = seeds(replace(run, training=replace(run.training, **long)), 3)
    child = start(runs, tmp_path, prepared, workers=workers)
    begun = tmp_path / "runs" / runs[max(0, workers - 1)].id / "metrics.jsonl"
    until(begun.exists)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=300)
    assert child.returncode == 130, err
    states = [each.state for each in read_records(tmp_path).found.values()]
    assert states == [State.INTERRUPTED] * max(1, workers)
    for each in runs[: max(1, workers)]:
        assert list((tmp_path / "runs" / each.id / "checkpoints").glob("update-*.json"))
    assert sweep(runs, InProcess(Folders(tmp_path, None, prepared)), tmp_path).recorded == 3
    attempts = [read_record(tmp_path / "runs" / each.id).status["attempts"] for each in runs]
    assert attempts == [2] * max(1, workers) + [1] * (3 - max(1, workers))


@pytest.mark.drill
def test_a_sweep_that_is_killed_leaves_no_worker_behind(run, prepared, tmp_path):
    long = {"updates": 10**6, "checkpoint_every": 10**6, "evaluate_every": 10**6}
    long = replace(run, training=replace(run.training, **long))
    child = start([long], tmp_path, prepared, workers=1)
    status = tmp_path / "runs" / long.id / "status.json"
    until((status.parent / "metrics.jsonl").exists)
    worker = json.loads(status.read_text())["pid"]
    child.kill()
    child.communicate()
    until(lambda: read_record(status.parent).state is State.INTERRUPTED)
    until(lambda: not Path(f"/proc/{worker}").exists())


def test_a_run_whose_result_is_missing_is_computed_again(run, prepared, tmp_path):
    folders = Folders(tmp_path, None, prepared)
    assert sweep([run], InProcess(folders), tmp_path).recorded == 1
    (tmp_path / "runs" / run.id / "result.json").unlink()
    outcome = sweep([run], InProcess(folders), tmp_path)
    assert (outcome.recorded, outcome.skipped) == (1, 0)
    assert read_record(tmp_path / "runs" / run.id).state in FINISHED


def test_a_record_that_was_changed_is_a_failure_with_its_reason_and_stays(run, prepared, tmp_path):
    folders = Folders(tmp_path, None, prepared)
    sweep([run], InProcess(folders), tmp_path)
    path = tmp_path / "runs" / run.id / "result.json"
    path.write_text(path.read_text().replace('"seconds": ', '"seconds": 1'))
    before = {each: each.read_bytes() for each in path.parent.glob("*.json")}
    outcome = sweep([run], InProcess(folders), tmp_path)
    assert "got changed ones" in outcome.failed[run.id]
    assert {each: each.read_bytes() for each in path.parent.glob("*.json")} == before
