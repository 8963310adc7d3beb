"""The sign-flip test counts every pattern, and its interval is the test inverted."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from depthpde.records.statistics import sign_flip
from depthpde.records.statistics.sign_flip import (
    EXACT_UP_TO,
    Alternative,
    sign_flip_interval,
    sign_flip_test,
    sign_flip_tests,
)
from depthpde.seeds import derive


def brute(d, side):
    sums = np.array([np.dot(signs, d) for signs in product((1, -1), repeat=len(d))])
    if side == "both":
        return np.mean(np.abs(sums) >= abs(sum(d)) - 1e-9)
    return np.mean(sums >= sum(d) - 1e-9) if side == "above" else np.mean(sums <= sum(d) + 1e-9)


@pytest.mark.parametrize("side", list(Alternative))
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_p_is_that_of_all_patterns(n, side):
    random = np.random.default_rng(n)
    for d in (random.normal(0.4, 1, n), random.integers(-2, 3, n).astype(float)):
        assert sign_flip_test(d, side=side) == pytest.approx(brute(d, side))


def test_ties_count_as_reached():
    assert sign_flip_test([0.1, 0.2, 0.3, -0.3]) == brute([0.1, 0.2, 0.3, -0.3], "both")
    assert sign_flip_test([0.0, 0.0, 0.0]) == 1.0
    assert sign_flip_test([0.1, -0.1]) == 1.0


def test_thirty_pairs_are_counted_not_drawn():
    # Integer sums have an exact distribution: the number of + signs is binomial.
    from scipy.stats import binom

    d = np.ones(30)
    d[:9] = -1  # 21 of 30 agree
    assert sign_flip_test(d) == pytest.approx(2 * binom.sf(20, 30, 0.5), rel=1e-12)
    assert sign_flip_test(np.ones(EXACT_UP_TO)) == 2.0 ** (1 - EXACT_UP_TO)


def test_beyond_forty_pairs_random_patterns_stay_near_and_repeat():
    d = np.random.default_rng(3).normal(0.3, 1, 60)
    near = sign_flip_test(d)
    from scipy.stats import norm

    normal = 2 * norm.sf(abs(d.sum()) / np.sqrt((d**2).sum()))
    assert near == pytest.approx(normal, rel=0.15)
    assert near == sign_flip_test(d)
    assert sign_flip_test(np.ones(60)) == pytest.approx(2 / 65537)


def test_the_interval_is_made_of_subset_means():
    d = [0.3, -0.4, 1.2, 0.9, 2.0, 0.1, 0.7]
    means = sorted(np.mean(s) for k in range(1, 8) for s in combinations(d, k))
    found = sign_flip_interval(d)
    k = int(2**7 * 0.025)
    assert (found.low, found.high) == pytest.approx((means[k - 1], means[-k]))


@pytest.mark.parametrize("level", [0.90, 0.95])
def test_the_interval_holds_what_the_test_does_not_reject(level):
    d = np.random.default_rng(5).normal(0.5, 1, 8)
    found = sign_flip_interval(d, level=level)
    for value in np.linspace(found.low - 0.5, found.high + 0.5, 101):
        p = min(2 * sign_flip_test(d - value, side=each) for each in ("above", "below"))
        assert (value in found) == (p > 1 - level)


def test_six_pairs_give_their_range_and_five_give_nothing():
    d = [1.4, 1.9, 1.1, 2.0, 1.7, 1.5]
    found = sign_flip_interval(d)
    assert (found.low, found.high) == (1.1, 2.0)
    assert sign_flip_interval(d[:5]) is None
    assert "equal" in sign_flip_interval([1.0] * 6).note


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sign_flip_interval(np.ones(21)), "at most 20 .* 21.*mean_interval"),
        (lambda: sign_flip_interval([1.0, 2.0], level=1.0), "level"),
        (lambda: sign_flip_interval([1.0]), "at least 2"),
        (lambda: sign_flip_test([1.0], side="up"), "both, above, below"),
    ],
)
def test_wrong_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("side", ["both", "above", "below"])
def test_several_samples_are_tested_as_each_by_itself(side: str) -> None:
    random = np.random.default_rng(3)
    samples = [random.normal(0.1, 1.0, size) for size in (6, 44, 60, 44, 12, 44)]
    samples.append(np.tile([1.0, -1.0], 22))  # sums to nothing: p is 1 where both sides count
    together = sign_flip_tests(samples, [side] * len(samples))
    assert together == [sign_flip_test(each, side=side) for each in samples]
    assert 0 < min(together) < max(together) <= 1
    assert sign_flip_tests([]) == []


@pytest.mark.parametrize("kept", [0, 500])
def test_patterns_that_are_kept_give_the_p_of_patterns_that_are_drawn(kept, monkeypatch):
    """The draws are those that were always made: p values in committed tables rest on them."""
    monkeypatch.setattr(sign_flip, "KEPT_UP_TO", kept)
    d = np.random.default_rng(3).normal(0.2, 1.0, 51)
    random = np.random.default_rng(derive(7, "sign-flip"))
    rounds, size = sign_flip.DRAWS
    reached = 0
    for _ in range(rounds):
        signs = random.integers(0, 2, (size, len(d)), "i1") * 2 - 1
        reached += np.count_nonzero(signs.astype(float) @ d >= d.sum() * (1 - 1e-12))
    wanted = (1 + reached) / (1 + rounds * size)
    assert 0.001 < wanted < 0.5
    for _ in range(2):
        assert sign_flip_test(d, side="above", seed=7) == wanted
