from __future__ import annotations

import dataclasses
from pathlib import Path

from depthpde.files import write_json
from depthpde.records.index.entry import summarize
from depthpde.records.record import STATUS, State, read_record


def some_run(results: Path) -> Path:
    return sorted((results / "runs").iterdir())[0]


def test_an_entry_keeps_what_a_record_says(results: Path) -> None:
    record = read_record(some_run(results))
    entry = summarize(record)
    result = record.result or {}
    assert (entry.id, entry.state) == (record.id, State.DONE)
    assert (entry.loss, entry.seconds) == (result["test"]["loss"], result["seconds"])
    assert entry.changed == max(
        (record.folder / name).stat().st_mtime for name in ("status.json", "result.json")
    )


def test_a_run_said_to_be_done_without_a_result_is_lost_at_any_time(results: Path) -> None:
    folder = some_run(results)
    (folder / "result.json").unlink()
    entry = summarize(read_record(folder))
    assert entry.state_at(0.0) is entry.state_at(1e12) is State.LOST


def test_a_running_run_is_lost_after_two_silent_minutes(results: Path) -> None:
    folder = some_run(results)
    (folder / "result.json").unlink()
    write_json(folder / STATUS, {"state": "running", "heartbeat": 1000.0})
    entry = summarize(read_record(folder))
    assert entry.state_at(1119.0) is State.RUNNING
    assert entry.state_at(1121.0) is State.LOST


def test_numbers_a_result_lacks_are_none(results: Path) -> None:
    record = read_record(some_run(results))
    test = {"accuracy": 50.0, "loss": "much"}
    entry = summarize(dataclasses.replace(record, result={"status": "done", "test": test}))
    assert (entry.accuracy, entry.loss, entry.seconds) == (50.0, None, None)
