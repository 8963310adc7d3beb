"""Records are read one by one: a bad one is named and hides no other."""

from __future__ import annotations

import json
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthpde.files import write_json
from depthpde.records.integrity.checksums import seal
from depthpde.records.record import (
    LOST_AFTER,
    Cell,
    Grid,
    State,
    read_grid,
    read_grids,
    read_record,
    read_records,
    write_grid,
)

DONE = {"format": 1, "status": "done"}
GRID = Grid(
    "placement", "Where?", "baseline", (Cell("text-mini", "baseline", 0, "a" * 16),),
    {"baseline": {"words": "nothing placed"}},
)  # fmt: skip


def make(results, name="a" * 16, *, config=None, status=None, result=None):
    folder = results / "runs" / name
    folder.mkdir(parents=True)
    config = {"task": "text-mini", "seed": 3} if config is None else config
    write_json(folder / "config.json", {"format": 1, "id": name, "label": "x", "config": config})
    if status is not None:
        write_json(folder / "status.json", status)
    if result is not None:
        write_json(folder / "result.json", {"format": 1, "status": "done"} | result)
    return folder


def test_a_record_tells_task_seed_state_and_accuracy(tmp_path):
    folder = make(tmp_path, result={"test": {"accuracy": 61.5}})
    record = read_record(folder)
    assert (record.task, record.seed, record.state, record.accuracy) == (
        "text-mini", 3, State.DONE, 61.5,
    )  # fmt: skip


def test_a_run_whose_heart_has_stopped_is_lost(tmp_path):
    now = time.time()
    alive = make(tmp_path, "a" * 16, status={"state": "running", "heartbeat": now})
    dead = {"state": "running", "heartbeat": now - LOST_AFTER - 1}
    assert read_record(alive).state is State.RUNNING
    assert read_record(make(tmp_path, "b" * 16, status=dead)).state is State.LOST
    assert read_record(make(tmp_path, "c" * 16)).state is State.PENDING


def test_a_line_that_is_being_written_is_not_read(tmp_path):
    folder = make(tmp_path)
    whole = json.dumps({"kind": "point", "update": 1}) + "\n"
    (folder / "metrics.jsonl").write_text(whole + whole[:9])
    assert read_record(folder).points() == [{"kind": "point", "update": 1}]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{half", r"metrics\.jsonl, line 2, must be JSON, but .*; remove the line"),
        ("[" * 100_000, r"metrics\.jsonl, line 2, must be JSON, but .*; remove the line"),
        ("[1]", r"line 2, must be an object with a kind, got \[1\]; remove the line"),
        ('{"update": 1}', "line 2, must be an object with a kind, got "),
    ],
)
def test_a_line_of_a_curve_that_cannot_be_read_is_named(tmp_path, line, words):
    folder = make(tmp_path)
    whole = json.dumps({"kind": "point", "update": 1}) + "\n"
    (folder / "metrics.jsonl").write_text(f"{whole}{line}\n{whole}")
    with pytest.raises(ValueError, match=words):
        read_record(folder).points()


def test_one_broken_record_hides_no_other(tmp_path):
    make(tmp_path, "a" * 16)
    (make(tmp_path, "b" * 16) / "config.json").write_text("{")
    (tmp_path / "runs" / "c").mkdir()
    records = read_records(tmp_path)
    assert list(records.found) == ["a" * 16]
    assert [each.path.name for each in records.broken] == ["b" * 16, "c"]


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("config.json", "{", "must be JSON, but .* it was not written whole: move .* away"),
        ("config.json", "[]", "must hold an object, got list; move .* away"),
        ("result.json", "{", "must be JSON, but .* move .* the same command computes it again"),
        ("status.json", "{", "must be JSON, but .* move .* the same command computes it again"),
        ("config.json", '{"format": 7}', "must be of format 1, got 7"),
        ("config.json", '{"format": 1, "config": {}}', "must hold a config with a task and a seed"),
        (
            "config.json",
            '{"format": 1, "id": "b", "config": {"task": "t", "seed": 0}}',
            "must hold the run of its name, got 'b'",
        ),
        (
            "config.json",
            '{"format": 1, "config": {"task": "t", "seed": null}}',
            "must name a task and number a seed, got 't' and None",
        ),
        (
            "result.json",
            '{"format": 1, "status": "running"}',
            "must be a result of format 1; move .* away",
        ),
        (
            "result.json",
            '{"format": 1, "status": "done", "test": {"accuracy": NaN}}',
            "must be finite, got NaN; .*move .* away",
        ),
        (
            "result.json",
            '{"format": 1, "status": "done", "ratios": null}',
            "ratios must be lists of numbers by name, got .None.; move .* away",
        ),
        ("status.json", '{"state": "asleep"}', "must tell a state, got 'asleep'; move .* away"),
    ],
)
def test_says_what_is_wrong_with_a_record(tmp_path, file, text, words):
    folder = make(tmp_path)
    (folder / file).write_text(text)
    with pytest.raises(ValueError, match=words):
        read_record(folder)


def test_says_that_a_folder_holds_no_record(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config\.json.*is not"):
        read_record(tmp_path)


def test_an_empty_results_folder_holds_nothing(tmp_path):
    assert read_records(tmp_path / "none").found == {}
    assert read_grids(tmp_path / "none").by_name == {}


def test_a_grid_comes_back_as_it_was_written(tmp_path):
    write_grid(tmp_path, GRID)
    assert read_grids(tmp_path).by_name == {"placement": GRID}


def test_a_grid_that_is_none_is_left_out_and_says_why_when_asked(tmp_path):
    path = write_grid(tmp_path, GRID)
    (path.parent / "bad.json").write_text('{"format": 1, "cells": 3}')
    (path.parent / "old.json").write_text('{"format": 0}')
    (path.parent / "half.json").write_text("{")
    assert list(read_grids(tmp_path).by_name) == ["placement"]
    printed = {each.path.name: each.reason for each in read_grids(tmp_path).broken}
    assert set(printed) == {"bad.json", "half.json", "old.json"}
    assert printed["half.json"].endswith("move it away and the same sweep writes it again")
    with pytest.raises(ValueError, match="must be a grid, but"):
        read_grid(path.parent / "bad.json")
    with pytest.raises(ValueError, match=r"must.*format 1, got 0"):
        read_grid(path.parent / "old.json")


@given(st.binary(max_size=200))
def test_no_bytes_in_a_config_stop_the_reading_of_others(tmp_path_factory, content):
    results = tmp_path_factory.mktemp("results")
    make(results, "a" * 16)
    (make(results, "b" * 16) / "config.json").write_bytes(content)
    assert list(read_records(results).found) == ["a" * 16]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("status.json", '{"state": "running", "update": 1e999}'),
        ("status.json", '{"state": "running", "heartbeat": 1%s}' % ("0" * 400)),
        ("status.json", '{"state": "running", "update": "three"}'),
        ("status.json", '{"state": "running", "error": ["x"]}'),
        ("result.json", '{"format": 1, "status": "done", "seconds": 1e999}'),
        ("result.json", '{"format": 1, "status": "done", "seconds": 1%s}' % ("0" * 400)),
        ("result.json", '{"format": 1, "status": "done", "seconds": 1%s}' % ("0" * 5000)),
        ("result.json", '{"format": 1, "status": "done", "ratios": {"a": ["x"]}}'),
        ("result.json", '{"format": 1, "status": "done", "trivial": {"a": null}}'),
        ("result.json", '{"format": 1, "status": "done", "test": {"accuracy": 101}}'),
        ("result.json", '{"format": 1, "status": "done", "test": {"accuracy": true}}'),
    ],
)
def test_numbers_that_nobody_can_count_with_break_one_record_and_no_other(tmp_path, file, text):
    make(tmp_path, "b" * 16)
    (make(tmp_path) / file).write_text(text)
    records = read_records(tmp_path)
    assert list(records.found) == ["b" * 16]
    assert file in records.broken[0].reason


def test_a_run_that_says_done_without_a_result_is_lost_not_done(tmp_path):
    assert read_record(make(tmp_path, status={"state": "done"})).state is State.LOST


@pytest.mark.parametrize("name", ["config.json", "status.json", "result.json"])
def test_a_pipe_a_device_and_an_endless_file_are_refused_unread(tmp_path, name):
    for number, fake in enumerate((os.mkfifo, _zero, _sparse)):
        folder = make(tmp_path, f"{number}" * 16, status={"state": "pending"})
        (folder / name).unlink(missing_ok=True)
        fake(folder / name)
    records = read_records(tmp_path)
    assert not records.found
    reasons = " ".join(each.reason for each in records.broken)
    assert all(word in reasons for word in ("a pipe", "a device", "10,737,418,240"))


def _zero(path):
    path.symlink_to("/dev/zero")


def _sparse(path):
    with path.open("wb") as stream:
        stream.truncate(10 * 2**30)


def test_predictions_that_were_cut_are_refused_also_without_checksums(tmp_path):
    folder = make(tmp_path, result={"test": {"accuracy": 50.0, "correct": 2, "targets": 4}})
    (folder / "predictions.u8").write_bytes(bytes(3))
    with pytest.raises(ValueError, match="must hold 4 predictions, got 3"):
        read_record(folder)
    (folder / "predictions.u8").write_bytes(bytes(4))
    record = read_record(folder)
    (folder / "predictions.u8").write_bytes(bytes(5))  # since it was read
    with pytest.raises(ValueError, match="must hold 4 predictions, got 5"):
        record.predictions()


def test_the_validations_of_a_sealed_curve_are_those_of_a_plain_one(tmp_path):
    lines = [
        {"kind": "point", "update": 1, "loss": float("nan")},
        {"kind": "validation", "update": 1, "accuracy": 50.0},
        {"kind": "point", "update": 2, "note": "no validation"},
        {"kind": "point", "update": 3, "note": "validation"},
        {"kind": "validation", "update": 3, "accuracy": 60.0},
    ]
    folder = make(tmp_path)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    plain = read_record(folder).validations()
    write_json(folder / "result.json", seal(folder, DONE, ("metrics.jsonl",)))
    assert read_record(folder).validations() == plain == [lines[1], lines[4]]


def test_a_broken_line_of_a_sealed_curve_keeps_its_number(tmp_path):
    folder = make(tmp_path)
    (folder / "metrics.jsonl").write_text('{"kind": "point"}\n{"kind": "validation",\n')
    write_json(folder / "result.json", seal(folder, DONE, ("metrics.jsonl",)))
    with pytest.raises(ValueError, match="line 2, must be JSON"):
        read_record(folder).validations()


def test_a_link_to_itself_is_no_file(tmp_path):
    folder = make(tmp_path)
    for name in ("status.json", "environment.json", "result.json"):
        (folder / name).symlink_to(name)
    assert read_record(folder).state is State.PENDING
