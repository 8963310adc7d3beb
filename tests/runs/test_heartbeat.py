"""A run says how it stands while it lives, and how it ended."""

from __future__ import annotations

import json

import pytest

from depthpde.records.record import State
from depthpde.runs.heartbeat import Heartbeat


def said(folder):
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
    assert said(tmp_path)["state"] == state


def test_a_session_tells_where_it_took_the_run_up(tmp_path):
    with Heartbeat(tmp_path, 10) as heart:
        assert said(tmp_path)["first"] == 0
    with Heartbeat(tmp_path, 10) as heart:
        heart.reach(6)
        heart.reach(7)
        heart._write("")
        assert (said(tmp_path)["first"], said(tmp_path)["update"]) == (5, 7)
    assert said(tmp_path)["attempts"] == 2
