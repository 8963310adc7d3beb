"""Power: what is said to be shown with 80 % is shown with 80 %."""

from __future__ import annotations

import numpy as np
import pytest

from depthpde.records.statistics.combination import combined_interval, combined_test
from depthpde.records.statistics.power import (
    detectable,
    one_task_effect,
    power_sentence,
    several_tasks_effect,
)


def test_six_pairs_show_what_all_six_signs_agree_on():
    # At six pairs the interval is the range: it leaves out 0 iff all six agree, Φ(δ)⁶ = 0.8.
    from scipy.stats import norm

    assert one_task_effect(6) == pytest.approx(norm.ppf(0.8 ** (1 / 6)), rel=0.02)


def test_simulated_andseveral_tasks_effects_meet():
    assert one_task_effect(12) == pytest.approx(one_task_effect(13) * (13 / 12) ** 0.5, rel=0.03)


def test_theseveral_tasks_effect_is_that_of_the_t_test():
    from scipy.stats import nct, t

    n = 20
    delta = one_task_effect(n) * n**0.5
    bar = t.ppf(0.975, n - 1)
    assert nct.sf(bar, n - 1, delta) == pytest.approx(0.8)


def test_more_pairs_show_less():
    effects = [one_task_effect(n) for n in range(6, 30)]
    assert effects == sorted(effects, reverse=True)


def test_what_is_detectable_over_tasks_is_detected_with_80_percent():
    random = np.random.default_rng(0)
    spreads = {"a": 0.5, "b": 0.8, "c": 1.9}
    least = several_tasks_effect(list(spreads.values()), [6, 6, 6])
    draw = {task: least + random.normal(0, s, (400, 6)) for task, s in spreads.items()}
    samples = [{task: each[k] for task, each in draw.items()} for k in range(400)]
    shown = [combined_interval(d).low > 0 and combined_test(d) <= 0.05 for d in samples]
    assert 0.74 <= np.mean(shown) <= 0.86


def test_two_alike_tasks_show_less_than_one():
    assert several_tasks_effect([1.0, 1.0], [6, 6]) < one_task_effect(6)


def test_detectable_scales_with_the_unit():
    d = {"a": np.array([1.0, 2.0, 0.5, 1.5, 0.1, 0.9]), "b": np.array([3.0, 1.0, 2.0, 2, 2, 5])}
    tenfold = {task: 10 * each for task, each in d.items()}
    assert detectable(tenfold) == pytest.approx(10 * detectable(d), rel=1e-3)


def test_the_sentence_names_pairs_points_and_chance():
    assert power_sentence(6, 1.234) == "6 pairs would have shown 1.2 points with 80 %"
    assert power_sentence(6, 123.4) == "6 pairs would have shown 123 points with 80 %"
    assert power_sentence(3, None) == "cannot be told from 3 pairs"


def test_five_pairs_can_show_nothing_and_equal_ones_everything():
    assert detectable({"a": [1.0, 2.0, 3.0, 1.0, 2.0]}) is None
    assert detectable({"a": [1.0] * 6, "b": [2.0] * 6}) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: one_task_effect(5), r"\[6"),
        (lambda: detectable({"a": [1.0] * 6}, power=1.0), "power"),
    ],
)
def test_wrong_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
