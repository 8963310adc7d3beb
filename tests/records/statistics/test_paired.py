from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from depthpde.records.statistics.paired import (
    BCA_FROM,
    IntervalMethod,
    compare,
    hodges_lehmann,
    holm,
    mean,
    mean_interval,
    probability_of_improvement,
    smallest_p,
    too_few,
)
from depthpde.records.statistics.sign_flip import sign_flip_test

TRUTH = 1.5
SAMPLES = 1500
points = st.floats(-50, 50).map(lambda value: round(value, 3))


def normal(random, n):
    return random.normal(TRUTH, 1.0, n)


def skewed(random, n):
    return TRUTH + random.gamma(4.0, size=n) / 2 - 2


def plateau(random, n):
    """Three seeds of ten jump by 20 points."""
    return TRUTH + random.normal(-6.0, 0.5, n) + 20.0 * (random.random(n) < 0.3)


def coverage(draw, n, method="auto"):
    random = np.random.default_rng(n)
    drawn = (draw(random, n) for _ in range(SAMPLES))
    return np.mean([TRUTH in mean_interval(each, method=method, resamples=799) for each in drawn])


@pytest.mark.parametrize(
    ("draw", "n"),
    [(normal, 3), (normal, 5), (normal, 6), (normal, 10), (skewed, 10), (plateau, 20)],
)
def test_automatic_intervals_cover_93_to_97_percent_for_few_seeds(draw, n):
    assert 0.93 <= coverage(draw, n) <= 0.97


@pytest.mark.parametrize("draw", [normal, skewed])
def test_automatic_intervals_cover_93_to_97_percent_where_bca_takes_over(draw):
    n = 2 * BCA_FROM
    assert mean_interval(draw(np.random.default_rng(0), n)).method is IntervalMethod.BCA
    assert 0.93 <= coverage(draw, n) <= 0.97


def test_bca_alone_is_too_narrow_for_six_seeds_which_is_why_it_is_not_the_default():
    assert coverage(normal, 6, "bca") < 0.91


def test_no_interval_of_five_seeds_is_honest_about_a_plateau_that_few_escape():
    assert coverage(plateau, 5) < 0.90


def test_corrected_test_finds_nothing_in_noise_more_often_than_five_percent():
    random = np.random.default_rng(0)
    false = 0
    for _ in range(1000):
        baseline = random.normal(size=8)  # shared by all variants, so the tests are dependent
        noise = random.standard_t(3, size=(4, 8)) - baseline
        false += min(holm([sign_flip_test(each) for each in noise])) <= 0.05
    assert false / 1000 <= 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5
    assert false > 0, "a test that never rejects has no power"


def test_corrected_test_finds_a_large_effect():
    random = np.random.default_rng(0)
    runs = dict(enumerate(random.normal(size=8)))
    better = {s: each + 3 + random.normal() / 4 for s, each in runs.items()}
    same = {s: each + random.normal() / 4 for s, each in runs.items()}
    found = compare(runs, {"better": better, "same": same})
    assert found["better"].p_holm <= 0.05 < found["same"].p_holm
    assert 0.0 not in found["better"].interval


@given(st.lists(points, min_size=1, max_size=9))
def test_sign_flip_p_is_the_share_of_all_patterns(d):
    sums = [
        abs(sum(s * x for s, x in zip(signs, d, strict=True)))
        for signs in product((-1, 1), repeat=len(d))
    ]
    wanted = np.mean([each >= abs(sum(d)) - 1e-9 for each in sums])
    assert sign_flip_test(d) == pytest.approx(wanted, abs=0)


def test_sign_flip_p_agrees_with_scipy():
    d = np.random.default_rng(1).normal(0.4, 1, 10)
    theirs = stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    assert sign_flip_test(d) == pytest.approx(theirs.pvalue, abs=1e-12)


def test_sign_flip_p_beyond_twenty_pairs_is_near_the_exact_one_and_repeatable():
    d = np.random.default_rng(2).normal(0.4, 1, 21)
    half = np.array(list(product((-1, 1), repeat=10))) @ d[:10]
    rest = np.array(list(product((-1, 1), repeat=11))) @ d[10:]
    exact = np.mean(np.abs(half[:, None] + rest) >= abs(d.sum()) - 1e-9)
    assert sign_flip_test(d) == pytest.approx(exact, abs=4 * (exact / 2**16) ** 0.5)
    assert sign_flip_test(d) == sign_flip_test(d)


def test_five_seeds_cannot_be_significant_and_six_can():
    assert sign_flip_test([1, 2, 3, 4, 5]) == smallest_p(5) == 0.0625
    assert sign_flip_test([1, 2, 3, 4, 5, 6]) == smallest_p(6) == 0.03125
    assert too_few(6) is None
    assert "5 paired seeds cannot reach p ≤ 0.05: the smallest possible p is 0.0625; 6" in str(
        too_few(5)
    )


def test_correction_over_variants_asks_for_more_seeds():
    assert "as the best of 4 comparisons: the smallest possible p is 0.125; 8 seeds" in str(
        too_few(6, comparisons=4)
    )
    assert too_few(8, comparisons=4) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closed_bonferroni_test(p):
    for index, corrected in enumerate(holm(p)):
        rest = [other for other in range(len(p)) if other != index]
        families = [
            (index, *chosen) for size in range(len(p)) for chosen in combinations(rest, size)
        ]
        wanted = max(min(1, len(each) * min(p[i] for i in each)) for each in families)
        assert corrected == pytest.approx(wanted, abs=1e-15)


def test_holm_of_nothing_is_nothing():
    assert holm([]) == []


def test_student_interval_is_scipys():
    d = [1.0, 2.5, -0.5, 3.0, 1.0]
    theirs = stats.ttest_1samp(d, 0).confidence_interval(0.9)
    ours = mean_interval(d, level=0.9)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs))
    assert ours.method is IntervalMethod.STUDENT


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_bootstrap_interval_is_near_scipys_with_another_seed(method):
    d = np.random.default_rng(3).gamma(2, size=60)
    theirs = stats.bootstrap(
        (d,), np.mean, n_resamples=20_000, method={"bca": "BCa"}.get(method, method), rng=5
    ).confidence_interval
    ours = mean_interval(d, method=method)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=0.05)
    assert ours == mean_interval(d, method=method), "the same numbers give the same interval"


def test_degenerate_sample_falls_back_to_percentile_and_says_so():
    found = mean_interval([2.0] * 60)
    assert (found.low, found.high) == (2.0, 2.0)
    assert found.method is IntervalMethod.PERCENTILE
    assert found.note == "BCa is not defined for this sample; percentile used"


def test_equal_differences_say_that_the_width_means_nothing():
    assert "says nothing" in mean_interval([2.0, 2.0, 2.0]).note
    assert mean_interval([2.0, 2.1, 2.0]).note == ""


@given(st.lists(points, min_size=1, max_size=12), points)
def test_hodges_lehmann_moves_with_its_sample_and_stays_inside(d, shift):
    effect = hodges_lehmann(d)
    assert min(d) <= effect <= max(d)
    assert hodges_lehmann(np.array(d) + shift) == pytest.approx(effect + shift, abs=1e-9)
    assert hodges_lehmann(-np.array(d)) == pytest.approx(-effect, abs=1e-9)


def test_hodges_lehmann_balances_the_signed_ranks():
    d = np.random.default_rng(4).normal(size=9)
    centred = d - hodges_lehmann(d)
    ranks = stats.rankdata(np.abs(centred))
    assert abs(ranks[centred > 0].sum() - ranks[centred < 0].sum()) <= len(d)
    outlier = np.append(d, 1000.0)
    assert abs(hodges_lehmann(outlier) - hodges_lehmann(d)) < 1


@given(st.lists(points, min_size=1, max_size=8), st.lists(points, min_size=1, max_size=8))
def test_probability_of_improvement_is_mann_whitneys(x, y):
    wanted = (
        stats.mannwhitneyu(x, y, method="asymptotic").statistic / (len(x) * len(y))
        if len({*x, *y}) > 1
        else 0.5
    )
    assert probability_of_improvement(x, y) == pytest.approx(wanted)


def test_comparison_pairs_by_seed_and_names_what_it_left_out():
    found = compare({1: 10.0, 2: 20.0, 3: 30.0}, {"v": {3: 31.0, 2: 22.0, 9: 90.0}})["v"]
    assert (found.n, found.mean, found.unpaired) == (2, 1.5, (1, 9))
    assert found.p == found.p_holm == 0.5
    assert "2 paired seeds cannot reach" in str(found.warning)


def test_the_mean_is_that_of_the_numbers():
    assert mean([1, 2, 6]) == 3.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean([]), "`values` must be a list of at least 1"),
        (lambda: mean_interval([1.0]), "at least 2 number.*run more seeds"),
        (lambda: mean([[1.0]]), r"got shape \[1, 1\]"),
        (lambda: sign_flip_test([1.0, float("nan")]), "`differences` must hold finite.*got nan"),
        (lambda: mean_interval([1, 2], method="bcca"), "did you mean 'bca'"),
        (lambda: mean_interval([1, 2], method="exact"), "'exact'; use 'auto'"),
        (lambda: mean_interval([1, 2], method="welch"), "'welch'; use 'auto'"),
        (lambda: mean_interval([1, 2], level=95), r"`level` must lie in \[0.5, 0.9999\]"),
        (lambda: mean_interval([1, 2], resamples=0), "`resamples` must be at least 1"),
        (lambda: holm([0.5, 1.5]), r"`p_values` must lie in \[0, 1\]"),
        (lambda: compare({1: 1.0}, {"v": {2: 2.0}}), "share at least two seeds.*got 0 for 'v'"),
        (lambda: smallest_p(0), "`n` must be at least 1"),
        (lambda: too_few(5, comparisons=0), "`comparisons` must be at least 1"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
