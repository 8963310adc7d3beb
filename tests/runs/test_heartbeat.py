"""A run says how it stands while it lives, and how it ended."""

from __future__ import annotations

import errno
import json
import os
import shutil

import pytest

from depthpde.records.record import State
from depthpde.runs.heartbeat import Heartbeat


def output(folder):
    return json.loads((folder / "status.json").read_text())


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (KeyboardInterrupt(), State.INTERRUPTED),
        (SystemExit(-1), State.INTERRUPTED),
        (OSError("the disk is full"), State.FAILED),
    ],
    ids=["asked to stop", "requeued by a cluster", "an error"],
)
def test_what_ends_a_run_from_outside_is_no_failure(tmp_path, error, state):
    with pytest.raises(type(error)), Heartbeat(tmp_path, 10):
        raise error
    assert output(tmp_path)["state"] == state


def test_a_session_tells_where_it_took_the_run_up(tmp_path):
    with Heartbeat(tmp_path, 10) as heartbeat:
        assert output(tmp_path)["first"] == 0
    with Heartbeat(tmp_path, 10) as heartbeat:
        heartbeat.reach(6)
        heartbeat.reach(7)
        heartbeat._write("")
        assert (output(tmp_path)["first"], output(tmp_path)["update"]) == (5, 7)
    assert output(tmp_path)["attempts"] == 2


def test_on_a_full_disk_the_status_still_says_that_the_run_failed(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill():
        monkeypatch.setattr(os, "fsync", full)
        full(0)

    with pytest.raises(OSError, match="No space"), Heartbeat(tmp_path, 10):
        fill()
    assert output(tmp_path)["state"] == State.FAILED
    assert f"the disk of {tmp_path} is full" in output(tmp_path)["error"]


def test_a_folder_that_is_gone_is_an_error_of_its_own(tmp_path):
    place = tmp_path / "run"
    place.mkdir()
    with pytest.raises(FileNotFoundError), Heartbeat(place, 10):
        shutil.rmtree(place)


def test_a_signal_that_came_is_told(tmp_path):
    from depthpde.runs.failure import TerminatedError

    with pytest.raises(TerminatedError), Heartbeat(tmp_path, 10):
        raise TerminatedError("terminated")
    assert (output(tmp_path)["state"], output(tmp_path)["signal"]) == (State.INTERRUPTED, 15)


def test_a_recorded_run_stays_recorded_whatever_ends_its_tidying(tmp_path):
    heartbeat = Heartbeat(tmp_path, 10)
    heartbeat.state = State.DONE
    with pytest.raises(KeyboardInterrupt), heartbeat:
        raise KeyboardInterrupt
    assert output(tmp_path)["state"] == State.DONE
