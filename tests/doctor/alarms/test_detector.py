"""A series that leaves its own trend is named, and first; noise and slow drift are not."""

import math
import random

import pytest

from depthpde.doctor.alarms.detector import Detector


def noisy(seed, spread=0.2):
    draw = random.Random(seed)
    return lambda k: math.exp(draw.gauss(0.0, spread))


def test_the_series_that_moves_first_is_named():
    calm, wild, judge = noisy(1), noisy(2), Detector()
    for k in range(60):
        values = {"calm": calm(k), "wild": wild(k) * (1.0 if k < 40 else 10.0 ** (k - 39))}
        found = judge.add(k, values)
        if found is not None:
            break
    assert found.series == "wild"
    assert found.update in (41, 42)
    assert found.others == ()
    assert "wild moved first" in str(found)


def test_noise_of_any_scale_and_slow_growth_are_no_alarm():
    series = {"small": noisy(3, 0.01), "large": noisy(4, 0.5), "slow": lambda k: 1.01**k}
    judge = Detector()
    assert all(
        judge.add(k, {n: 1e-8 * f(k) for n, f in series.items()}) is None for k in range(400)
    )


def test_one_reading_out_of_trend_is_not_enough_but_what_is_no_number_is():
    judge = Detector()
    for k in range(30):
        assert judge.add(k, {"x": 1.0}) is None
    assert judge.add(30, {"x": 100.0}) is None
    assert judge.add(31, {"x": 1.0}) is None
    found = judge.add(32, {"x": math.nan})
    assert found.series == "x"
    assert found.deviations == math.inf


def test_nothing_is_judged_before_there_is_a_trend():
    judge = Detector(first=10)
    assert all(judge.add(k, {"x": 10.0**k}) is None for k in range(10))


def test_what_moves_together_is_listed_the_farthest_first():
    judge = Detector(row=1)
    for k in range(20):
        judge.add(k, {"a": 1.0, "b": 1.0})
    found = judge.add(20, {"a": 5.0, "b": 50.0})
    assert (found.series, found.others) == ("b", ("a",))
    assert found.times == pytest.approx(50.0)
