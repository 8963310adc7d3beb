"""A run whose heartbeat was seen and stands still is lost; what an earlier attempt left is not."""

from __future__ import annotations

import json
import time

import pytest

from depthpde.sweeps.lost import LostRuns

RUN = "0" * 16


@pytest.fixture
def beat(tmp_path):
    path = tmp_path / "runs" / RUN / "status.json"
    path.parent.mkdir(parents=True)

    def beat(number, state="running"):
        path.write_text(json.dumps({"state": state, "heartbeat": number}))

    return beat


def look(lost, seconds=0.3):
    """Look again and again for a while, and return all that was found."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        found += lost.find([RUN])
        time.sleep(0.01)
    return found


def test_a_heart_that_stops_is_found_once(tmp_path, beat):
    lost = LostRuns(tmp_path, patience=0.1)
    lost.start(RUN)
    assert look(lost) == [], "not begun yet: it may wait in a queue"
    beat(1)
    assert look(lost, 0.05) == []
    assert look(lost) == [RUN]
    assert look(lost) == [], "told once"
    beat(2)
    assert look(lost, 0.05) == [], "alive again"


def test_the_last_beat_of_an_earlier_attempt_says_nothing(tmp_path, beat):
    beat(1)
    lost = LostRuns(tmp_path, patience=0.05)
    lost.start(RUN)
    assert look(lost) == []


def test_a_run_that_has_ended_is_not_lost(tmp_path, beat):
    lost = LostRuns(tmp_path, patience=0.05)
    lost.start(RUN)
    beat(1)
    look(lost, 0.03)
    beat(1, "done")
    assert look(lost) == []
