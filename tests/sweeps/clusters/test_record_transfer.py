"""A record travels whole, its result last, and cannot leave its folder."""

from __future__ import annotations

import pytest

from depthpde.records.record import read_record
from depthpde.runs.execute import execute
from depthpde.sweeps.clusters.record_transfer import pack, pack_live, unpack


def test_a_record_arrives_as_it_was_without_checkpoints_and_locks(run, prepared, tmp_path):
    there = execute(run, tmp_path / "there", prepared=prepared)
    for stage in ("checkpoints", "checkpoints-pretraining"):
        (there.folder / stage).mkdir()
        (there.folder / stage / "update-1.json").write_text("{}")
    parcel = pack(there.folder)
    assert not any(name.startswith(("checkpoints", ".")) for name in parcel)
    folder = tmp_path / "here" / "runs" / run.id
    assert unpack(parcel, folder)
    here = read_record(folder)
    assert (here.result, here.config, here.status) == (there.result, there.config, there.status)
    assert here.points() == there.points()
    assert here.predictions().tolist() == there.predictions().tolist()


def test_a_record_that_is_there_is_not_written_again(run, prepared, tmp_path):
    record = execute(run, tmp_path, prepared=prepared)
    assert not unpack(pack(record.folder) | {"result.json": b"other"}, record.folder)
    assert read_record(record.folder) == record


def test_checkpoints_begun_here_go_when_the_result_comes_and_not_before(tmp_path):
    for stage in ("checkpoints", "checkpoints-pretraining"):
        (tmp_path / stage).mkdir()
        (tmp_path / stage / "update-1.json").write_text("{}")
    assert unpack({"status.json": b"{}"}, tmp_path)
    assert len(list(tmp_path.glob("checkpoints*/update-1.json"))) == 2
    assert unpack({"status.json": b"{}", "result.json": b"{}"}, tmp_path)
    assert not list(tmp_path.glob("checkpoints*"))


def test_the_result_comes_last(tmp_path):
    (tmp_path / "status.json").mkdir()  # so that this file cannot be written
    with pytest.raises(OSError, match=r"status\.json"):
        unpack({"result.json": b"{}", "config.json": b"{}", "status.json": b"{}"}, tmp_path)
    assert not (tmp_path / "result.json").exists()


def test_what_is_still_computed_shows_its_curve_and_not_its_weights(tmp_path):
    for name in ("config.json", "status.json", "metrics.jsonl", "predictions.u8"):
        (tmp_path / name).write_text("")
    assert set(pack_live(tmp_path)) == {"config.json", "status.json", "metrics.jsonl"}


@pytest.mark.parametrize("name", ["../other/result.json", "/etc/passwd", "a/../../b", ".lock", ""])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="must hold names inside the run's folder"):
        unpack({name: b""}, tmp_path)
