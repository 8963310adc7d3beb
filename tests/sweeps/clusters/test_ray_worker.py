"""What a machine of the cluster keeps of runs, and gives away; no cluster is needed for that."""

from __future__ import annotations

import json

import pytest

from depthpde.sweeps.clusters.ray_worker import (
    RECORDED,
    TOKEN,
    LiveRecords,
    fetch,
    forget,
    held,
    scratch,
    sees,
    tidy,
)
from depthpde.sweeps.executor import Folders, InProcess
from depthpde.sweeps.sweep import sweep


@pytest.fixture
def token(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return "word"


def test_records_and_begun_runs_are_held_until_forgotten(token, run, prepared):
    assert held(token) == {}
    place = scratch(token)
    assert sweep([run], InProcess(Folders(place, None, prepared)), place).recorded == 1
    begun = place / "runs" / ("0" * 16)
    begun.mkdir()
    config = json.loads((place / "runs" / run.id / "config.json").read_text())
    (begun / "config.json").write_text(json.dumps(config | {"id": begun.name}))
    (begun / "status.json").write_text(json.dumps({"state": "interrupted", "update": 7}))
    (place / "runs" / "strange").mkdir()
    assert held(token)[run.id] == RECORDED
    assert held(token)[begun.name] == 7
    files = fetch(token, run.id)
    assert {"result.json", "config.json"} <= set(files)
    forget(token, run.id)
    assert set(held(token)) == {begun.name}
    assert place.exists(), "another run is kept here"


def test_the_last_run_takes_the_scratch_folder_along(token):
    (scratch(token) / "runs" / "a").mkdir(parents=True)
    forget(token, "a")
    assert not scratch(token).exists()


def test_a_machine_knows_whether_it_sees_the_folder(tmp_path):
    assert not sees(tmp_path, "word")
    (tmp_path / TOKEN).write_text("word")
    assert sees(tmp_path, "word")
    assert not sees(tmp_path, "another")


def test_live_records_are_taken_once_the_newest_alone():
    live = LiveRecords()
    live.put("a", {"status.json": b"1"})
    live.put("a", {"status.json": b"2"})
    assert live.take() == {"a": {"status.json": b"2"}}
    assert live.take() == {}


def test_what_was_recorded_elsewhere_is_tidied_up_and_the_rest_kept(token):
    for name in ("a", "b"):
        (scratch(token) / "runs" / name).mkdir(parents=True)
        (scratch(token) / "runs" / name / "status.json").write_text('{"update": 3}')
        (scratch(token) / "runs" / name / "config.json").write_text("{}")
    tidy(token, ["a", "elsewhere"])
    assert [each.name for each in (scratch(token) / "runs").iterdir()] == ["b"]
