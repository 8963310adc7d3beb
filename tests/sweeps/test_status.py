"""How the cells of a grid stand, and how long they will take."""

from __future__ import annotations

import json
import time

import pytest

from depthpde.records.record import Cell, Grid, State
from depthpde.sweeps.status import cell_statuses, seconds_left, summary

ID = "{:016x}".format


def put(results, number, *, status=None, result=None):
    """Write the record of a run by hand."""
    folder = results / "runs" / ID(number)
    folder.mkdir(parents=True)
    config = {"task": "listops-mini", "seed": number}
    output = {"format": 1, "id": ID(number), "label": "it", "config": config}
    (folder / "config.json").write_text(json.dumps(output))
    (folder / "status.json").write_text(json.dumps(status or {}))
    if result is not None:
        body = {"format": 1, "status": "done", "seconds": 10.0, "test": {"accuracy": 41.26}}
        (folder / "result.json").write_text(json.dumps(body | result))
    return folder


def running(update=25, beat=0.0):
    now = time.time()
    return {
        "state": "running", "update": update, "updates": 100, "heartbeat": now - beat,
        "started": now - 50.0 - beat, "attempts": 1, "error": "",
    }  # fmt: skip


def grid(count, task="listops-mini"):
    cells = tuple(Cell(task, "baseline", number, ID(number)) for number in range(count))
    return Grid("question", "Does it?", "baseline", cells, {"baseline": {"words": ""}})


def test_every_state_is_told_with_its_mark(tmp_path):
    put(tmp_path, 1, status=running())
    put(tmp_path, 2, status=running(beat=1000.0))
    put(tmp_path, 3, status={"state": "interrupted", "update": 3, "updates": 9})
    put(tmp_path, 4, status={"state": "failed", "error": "OSError: full"})
    put(tmp_path, 5, result={})
    put(tmp_path, 6, result={"status": "diverged"})
    put(tmp_path, 7, result={"status": "stopped"})
    put(tmp_path, 8, result={"status": "diverged", "test": None})
    found = cell_statuses(grid(9), tmp_path)
    assert [each.state for each in found] == [
        State.PENDING, State.RUNNING, State.LOST, State.INTERRUPTED, State.FAILED, State.DONE,
        State.DIVERGED, State.STOPPED, State.DIVERGED,
    ]  # fmt: skip
    assert [each.mark for each in found] == [
        "·", "25 %", "lost", "paused", "failed", "41.3", "diverged", "41.3", "diverged",
    ]  # fmt: skip
    assert found[4].error == "OSError: full"


def test_a_record_that_cannot_be_read_is_a_failure_with_its_reason(tmp_path):
    (put(tmp_path, 0) / "config.json").write_text("{")
    (found,) = cell_statuses(grid(1), tmp_path)
    assert found.state is State.FAILED
    assert "must be JSON" in found.error


def test_two_cells_of_one_run_count_once(tmp_path):
    put(tmp_path, 0, result={})
    cells = (Cell("listops-mini", "a", 0, ID(0)), Cell("listops-mini", "b", 0, ID(0)))
    shared = Grid("question", "", "a", cells, {"a": {}, "b": {}})
    found = summary(cell_statuses(shared, tmp_path))
    assert found == {"runs": 1, "finished": 1, "states": {"done": 1}, "seconds_left": 0.0}


def test_the_time_left_is_that_of_what_runs_and_of_what_waits(tmp_path):
    for number in (0, 1):
        put(tmp_path, number, result={"seconds": 40.0})
    put(tmp_path, 2, status=running())  # 25 of 100 updates took 50 s: 150 s are left
    put(tmp_path, 3, status=running(50))  # 50 s are left
    left = seconds_left(cell_statuses(grid(7), tmp_path))  # and 3 wait, of 40 s each
    assert left == pytest.approx((150 + 50 + 3 * 40) / 2, rel=0.02)


def test_a_pause_between_two_runs_does_not_double_the_time_left(tmp_path):
    put(tmp_path, 0, result={"seconds": 40.0})
    put(tmp_path, 1, status=running(50))  # 50 s are left
    cells = cell_statuses(grid(5), tmp_path)  # and 3 wait, of 40 s each
    alone, together = (seconds_left(cells, at_once=n) for n in (0, 2))
    assert alone == pytest.approx(170, rel=0.02)
    assert together == pytest.approx(85, rel=0.02)
    assert seconds_left(cells[:2], at_once=2) == pytest.approx(50, rel=0.02)


def test_the_time_left_of_a_resumed_run_is_told_by_its_last_session(tmp_path):
    put(tmp_path, 0, status=running(60) | {"first": 50})  # 10 updates took 50 s: 200 s are left
    put(tmp_path, 1, status=running(50) | {"first": 50})  # nothing is known of its pace
    resumed, fresh = cell_statuses(grid(2), tmp_path)
    assert resumed.seconds == pytest.approx(200, rel=0.02)
    assert fresh.seconds is None


def test_the_time_left_is_never_less_than_that_of_the_slowest_run(tmp_path):
    put(tmp_path, 0, status=running())
    put(tmp_path, 1, status=running(99))
    assert seconds_left(cell_statuses(grid(2), tmp_path)) == pytest.approx(150, rel=0.02)


def test_the_time_left_is_unknown_until_something_is_known(tmp_path):
    assert seconds_left(cell_statuses(grid(2), tmp_path)) is None
    put(tmp_path, 0, status=running(0))
    assert seconds_left(cell_statuses(grid(2), tmp_path)) is None
