"""An interval holds what lies between its ends."""

from __future__ import annotations

from depthpde.records.statistics.interval import Interval, IntervalMethod


def test_an_interval_holds_its_ends_and_nothing_beyond():
    found = Interval(low=-0.2, high=0.4, level=0.95, method=IntervalMethod.STUDENT)
    assert -0.2 in found
    assert 0.4 in found
    assert 0.41 not in found
