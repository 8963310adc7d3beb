"""Escape times: when, how many are left, and whether one variant is later."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from depthpde.records.statistics.survival import (
    EscapeTime,
    escape_time,
    kaplan_meier,
    log_rank_test,
)


def times(*updates, end=600):
    return [EscapeTime(min(u, end), escaped=u <= end) for u in updates]


def seeds(runs):
    return dict(enumerate(runs))


def test_an_escape_needs_two_looks_in_a_row():
    assert escape_time(
        [(50, 50.0), (100, 99.0), (150, 50.0), (200, 70.0), (250, 90.0)], 50.0, examples=800
    ) == EscapeTime(200, escaped=True)
    assert escape_time([(50, 50.0), (100, 99.0)], 50.0, examples=800) == EscapeTime(
        100, escaped=False
    )


def test_the_test_split_is_the_last_look():
    curve = [(50, 50.0), (100, 80.0)]
    assert escape_time(curve, 50.0, examples=800, final=85.0) == EscapeTime(100, escaped=True)
    assert not escape_time(curve, 50.0, examples=800, final=50.0).escaped


def test_the_bar_is_three_errors_above_the_line():
    bar = 50 + 3 * (50 * 50 / 400) ** 0.5
    assert escape_time([(1, bar + 0.01), (2, bar + 0.01)], 50.0, examples=400).escaped
    assert not escape_time([(1, bar - 0.01), (2, bar - 0.01)], 50.0, examples=400).escaped


def test_kaplan_meier_agrees_with_scipy():
    from scipy.stats import CensoredData, ecdf

    runs = [*times(100, 150, 150, 300, 450, 700, 800), EscapeTime(200, escaped=False)]
    found = kaplan_meier(runs)
    known = ecdf(
        CensoredData(
            uncensored=[r.update for r in runs if r.escaped],
            right=[r.update for r in runs if not r.escaped],
        )
    ).sf
    assert list(found.staying) == pytest.approx([float(known.evaluate(t)) for t in found.times])
    band = known.confidence_interval(method="log-log")
    for k, t in enumerate(found.times):
        assert found.low[k] == pytest.approx(float(band.low.evaluate(t)))
        assert found.high[k] == pytest.approx(float(band.high.evaluate(t)))


def test_all_out_leaves_nothing_and_none_out_leaves_all():
    gone = kaplan_meier(times(100, 200))
    assert gone.staying[-1] == 0.0
    assert gone.median == 100
    stuck = kaplan_meier(times(900, 900))
    assert stuck.times == ()
    assert stuck.median is None
    assert (gone.low[-1], gone.high[-1]) == (0.0, 1.0)


def test_log_rank_statistic_agrees_with_scipy_on_its_direction_and_size():
    # Half the sum of the scores' differences is U of the classical test.
    from scipy.stats import CensoredData, logrank

    from depthpde.records.statistics.survival import _log_rank_scores

    a, b = times(300, 450, 700, 700, 500, 800), times(100, 150, 200, 350, 250, 300)
    scores = _log_rank_scores(a + b)
    known = logrank(*(CensoredData(uncensored=[r.update for r in x if r.escaped],
                                   right=[r.update for r in x if not r.escaped])
                      for x in (a, b)))  # fmt: skip
    assert scores.sum() == pytest.approx(0.0, abs=1e-9)
    assert np.sign(scores[:6].sum()) == np.sign(known.statistic)
    assert scores[:6].sum() < -2


def test_exchanges_within_pairs_are_counted_exactly():
    a, b = times(300, 450, 700, 700), times(100, 500, 200, 350)
    from depthpde.records.statistics.survival import _log_rank_scores

    scores = _log_rank_scores(a + b)
    observed = abs(scores[:4].sum())
    reached = [
        abs(sum(scores[k + 4 * swap] for k, swap in enumerate(swaps)) - 0.0)
        for swaps in product((0, 1), repeat=4)
    ]
    # Σ scores = 0, so U of any exchange is the sum over who is called the variant.
    expected = np.mean([each >= observed - 1e-9 for each in reached])
    assert log_rank_test(seeds(a), seeds(b)) == pytest.approx(expected)


def test_six_later_pairs_reach_the_least_p_and_equal_ones_none():
    a, b = times(*[500] * 6), times(*[100] * 6)
    assert log_rank_test(seeds(a), seeds(b)) == 2.0**-5
    assert log_rank_test(seeds(a), seeds(a)) == 1.0


def test_many_pairs_are_drawn_with_the_observed_one_among_them():
    a, b = times(*[500] * 20), times(*[100] * 20)
    p = log_rank_test(seeds(a), seeds(b))
    assert 0 < p <= 2 / 2**14
    assert p == log_rank_test(seeds(a), seeds(b))


def test_without_an_effect_p_is_rarely_small():
    random = np.random.default_rng(0)
    small = 0
    for _ in range(400):
        draw = times(*np.where(random.random(16) < 0.4, 900, random.integers(50, 600, 16)))
        small += log_rank_test(seeds(draw[:8]), seeds(draw[8:])) <= 0.05
    assert small / 400 <= 0.085


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: escape_time([], 50.0, examples=800), "curve"),
        (lambda: escape_time([(2, 1.0), (1, 1.0)], 50.0, examples=800), "increasing"),
        (lambda: kaplan_meier([]), "at least one"),
        (lambda: log_rank_test({0: EscapeTime(1, True)}, {1: EscapeTime(1, True)}), "share"),
    ],
)
def test_wrong_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
