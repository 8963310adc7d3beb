"""Looks before the end spend 5 % in all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from depthpde.records.statistics.sequential import looks, spent, total_error


def test_all_is_spent_at_the_end_and_little_before():
    assert spent(1.0) == pytest.approx(0.05)
    assert spent(0.25) < 1e-4


def test_one_look_is_the_level_itself():
    assert looks([10]) == pytest.approx([0.05])


def test_the_first_look_spends_its_share():
    assert looks([6, 8, 10])[0] == pytest.approx(spent(0.6))
    assert looks([6, 8, 10]) == pytest.approx([0.0114, 0.0244, 0.0392], abs=1e-4)


@pytest.mark.parametrize("pairs", [[6, 8, 10], [1, 2, 3, 4], [3, 12]])
def test_the_looks_together_are_wrong_in_5_percent(pairs):
    random = np.random.default_rng(sum(pairs))
    walk = random.standard_normal((200_000, pairs[-1])).cumsum(axis=1)
    z = walk[:, np.array(pairs) - 1] / np.sqrt(pairs)
    bars = -ndtri(np.array(looks(pairs)) / 2)
    assert np.mean((np.abs(z) > bars).any(axis=1)) == pytest.approx(0.05, abs=0.0015)


@pytest.mark.parametrize("levels", [(0.05, 0.05, 0.05), (0.01, 0.02, 0.04)])
def test_levels_that_somebody_chose_are_wrong_as_often_as_a_walk_is(levels):
    random = np.random.default_rng(1)
    walk = random.standard_normal((200_000, 10)).cumsum(axis=1)
    z = walk[:, [5, 7, 9]] / np.sqrt([6, 8, 10])
    wrong = np.mean((np.abs(z) > -ndtri(np.array(levels) / 2)).any(axis=1))
    assert total_error([6, 8, 10], levels) == pytest.approx(wrong, abs=0.002)


def test_the_levels_of_a_plan_add_up_to_its_own():
    assert total_error([6, 8, 10], looks([6, 8, 10])) == pytest.approx(0.05)
    assert total_error([6], [0.03]) == pytest.approx(0.03)
    with pytest.raises(ValueError, match="levels"):
        total_error([6], [0.0])


@pytest.mark.parametrize("pairs", [[], [0, 3], [6, 6], [8, 6]])
def test_looks_must_increase(pairs):
    with pytest.raises(ValueError, match="pairs"):
        looks(pairs)


def test_information_is_a_share():
    with pytest.raises(ValueError, match="information"):
        spent(1.2)
