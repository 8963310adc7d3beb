"""Several tasks make one difference, and no task decides the test alone."""

from __future__ import annotations

import numpy as np
import pytest

from depthpde.records.statistics.combination import (
    combined_interval,
    combined_mean,
    combined_spread,
    combined_test,
    directed_test,
)
from depthpde.records.statistics.interval import IntervalMethod
from depthpde.records.statistics.sign_flip import sign_flip_interval, sign_flip_test

SMALL = [0.5, 0.7, 0.4, 0.6, 0.5, 0.8]
LARGE = [-20.0, 25.0, -30.0, 10.0, -15.0, 22.0]


def test_every_task_counts_alike_in_the_mean():
    assert combined_mean({"a": [1.0, 1.0, 1.0, 1.0], "b": [3.0]}) == 2.0


def test_one_task_is_the_sign_flip_test_itself():
    assert combined_test({"a": SMALL}) == sign_flip_test(SMALL)
    found = combined_interval({"a": SMALL})
    assert found == sign_flip_interval(SMALL)


def test_a_task_of_large_spread_does_not_decide_the_test():
    raw = sign_flip_test([*SMALL, *SMALL, *LARGE])
    assert raw > 0.5
    assert combined_test({"a": SMALL, "b": SMALL, "c": LARGE}) < 0.01


def test_the_directed_test_is_the_same_unless_the_mean_is_on_the_other_side():
    assert directed_test({"a": SMALL}) == combined_test({"a": SMALL})
    torn = {"a": [10.0, 11.0, 9.0], "b": [-0.1] * 6, "c": [-0.2] * 6, "d": [-0.3] * 6}
    assert combined_mean(torn) > 0
    assert combined_test(torn) < 0.05
    assert directed_test(torn) == 1.0
    negative = [-each for each in SMALL]
    assert directed_test({"a": negative}) == combined_test({"a": SMALL})


def test_the_test_does_not_see_the_unit_of_a_task():
    scaled = [100 * each for each in SMALL]
    assert combined_test({"a": SMALL, "b": LARGE}) == combined_test({"a": scaled, "b": LARGE})


def test_the_studentised_statistic_flips_exactly():
    d = {"a": [1.0, 2.0, -0.5], "b": [0.2, 0.1]}
    unit = [np.array(each) / np.linalg.norm(each) for each in d.values()]
    signs = np.array(np.meshgrid(*[[1, -1]] * 5)).reshape(5, -1)
    sums = signs.T @ np.concatenate(unit)
    expected = np.mean(np.abs(sums) >= abs(np.concatenate(unit).sum()) - 1e-9)
    assert combined_test(d) == pytest.approx(expected)


def test_a_task_without_any_difference_adds_nothing():
    assert combined_test({"a": SMALL, "b": [0.0] * 6}) == combined_test({"a": SMALL})


def test_welch_satterthwaite_agrees_with_the_two_sample_formula():
    # Two tasks: Δ = (m₁ + m₂)/2 has the spread of (m₁ − m₂)/2, which is Welch's.
    from scipy.stats import ttest_ind

    d = {"a": SMALL, "b": LARGE}
    known = ttest_ind(SMALL, LARGE, equal_var=False)
    found = combined_spread(d)
    assert found.freedom == pytest.approx(known.df)
    assert found.error == pytest.approx(
        abs((np.mean(SMALL) - np.mean(LARGE)) / known.statistic) / 2
    )
    interval = combined_interval(d)
    assert interval.method is IntervalMethod.WELCH
    known_half = known.confidence_interval().high - known.confidence_interval().low
    assert interval.high - interval.low == pytest.approx(known_half / 2)


def test_five_pairs_on_any_task_give_no_interval():
    assert combined_interval({"a": SMALL, "b": LARGE[:5]}) is None


def test_many_pairs_of_one_task_are_students():
    d = np.random.default_rng(0).normal(1, 1, 25)
    found = combined_interval({"a": d})
    assert found.method is IntervalMethod.STUDENT
    from scipy.stats import ttest_1samp

    assert found.low == pytest.approx(ttest_1samp(d, 0).confidence_interval().low)


def test_equal_differences_say_that_their_width_means_nothing():
    found = combined_interval({"a": [1.0] * 6, "b": [2.0] * 6})
    assert (found.low, found.high) == (1.5, 1.5)
    assert "equal" in found.note
    assert combined_spread({"a": [1.0] * 6}).freedom == np.inf


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: combined_spread({"a": [1.0]}), "at least 2"),
        (lambda: combined_interval({"a": SMALL}, level=2.0), "level"),
        (lambda: combined_mean({}), "at least one task"),
    ],
)
def test_wrong_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
