"""Equivalence is shown by two one-sided tests, or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from depthpde.records.statistics.equivalence import equivalence

NEAR = {"text": [0.1, -0.2, 0.0, 0.1, 0.2, -0.1]}


def test_near_zero_is_equivalent_and_a_wide_spread_is_not():
    assert equivalence(NEAR, 0.5).shown
    assert not equivalence({"text": [3.0, -3.1, 2.0, -2.2, 1.0, -0.9]}, 0.5).shown
    assert not equivalence({"text": [1.1, 1.2, 1.0, 1.1, 1.3, 0.9]}, 0.5).shown


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_it_is_shown_exactly_where_the_90_percent_interval_is_inside(tasks, seed):
    random = np.random.default_rng(seed)
    d = {str(t): random.normal(0.2, 0.5, 8) for t in range(tasks)}
    found = equivalence(d, 0.5)
    inside = found.interval.low > -0.5 and found.interval.high < 0.5
    assert found.shown == inside
    assert found.interval.level == pytest.approx(0.9)


def test_three_pairs_can_show_nothing():
    assert equivalence({"text": [0.0, 0.0, 0.0]}, 0.5) is None


def test_equal_differences_within_the_margin_are_equivalent():
    same = {"a": [0.1] * 6, "b": [0.1] * 6}
    assert equivalence(same, 0.5).p == 0.0
    assert equivalence(same, 0.05).p == 1.0


@pytest.mark.parametrize("margin", [0.0, -1.0, float("nan"), float("inf")])
def test_a_margin_must_be_named(margin):
    with pytest.raises(ValueError, match="margin"):
        equivalence(NEAR, margin)
