"""The small form of benchmarks/inference.py: what is printed keeps what it promises."""

from __future__ import annotations

import numpy as np
import pytest

from depthpde.records.statistics.validation import (
    SHAPES,
    SPREADS,
    coverage,
    false_delays,
    false_equivalences,
    false_findings,
    resampled,
    shape_of,
    shown_at_the_least,
    student_coverage,
)

DRAWS = 600
SLACK = 3 * (0.05 * 0.95 / DRAWS) ** 0.5  # three errors of a share near 5 %
OURS = SPREADS["four, ours"]


@pytest.mark.parametrize("spreads", [SPREADS["one task"], OURS])
@pytest.mark.parametrize("name", ["normal", "skewed", "tied"])
@pytest.mark.parametrize("n", [6, 8])
def test_printed_intervals_hold_the_truth_in_93_to_97_percent(name, spreads, n):
    held = coverage(SHAPES[name], spreads, n, draws=DRAWS)
    assert 0.93 - SLACK <= held <= 0.97 + SLACK


@pytest.mark.parametrize("spreads", [SPREADS["one task"], OURS])
@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize("n", [3, 6])
def test_nothing_is_found_where_there_is_nothing(name, spreads, n):
    assert false_findings(SHAPES[name], spreads, n, draws=DRAWS) <= 0.05 + SLACK


@pytest.mark.parametrize("spreads", [SPREADS["one task"], OURS])
def test_a_difference_of_the_margin_is_rarely_called_equivalent(spreads):
    assert false_equivalences(SHAPES["normal"], spreads, 6, draws=DRAWS) <= 0.05 + SLACK


@pytest.mark.parametrize("spreads", [SPREADS["one task"], OURS])
def test_what_is_said_to_be_shown_with_80_percent_is(spreads):
    shown = shown_at_the_least(SHAPES["normal"], spreads, 6, draws=300)
    assert shown == pytest.approx(0.8, abs=0.07)


def test_escape_times_are_not_found_to_differ_where_they_do_not():
    assert false_delays(6, draws=300) <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_three_pairs_get_no_interval_and_a_plateau_shows_why_it_must_not():
    for spreads in SPREADS.values():
        assert coverage(SHAPES["normal"], spreads, 3, draws=2) is None
        assert false_equivalences(SHAPES["normal"], spreads, 3, draws=2) is None
        assert shown_at_the_least(SHAPES["normal"], spreads, 3, draws=2) is None
    assert student_coverage(SHAPES["plateau"], (1.0,), 6, draws=DRAWS) < 0.93


def test_the_simulation_itself_can_find_a_bad_method():
    # An 80 % interval is not a 95 % one, and a shifted sample is not null.
    assert coverage(SHAPES["normal"], (1.0,), 8, draws=DRAWS, level=0.8) < 0.86

    def shifted(random, size):
        return random.standard_normal(size) + 1.0

    assert coverage(shifted, (1.0,), 8, draws=DRAWS) < 0.5


@pytest.mark.parametrize("name", list(SHAPES))
def test_shapes_have_mean_0_and_spread_1(name):
    drawn = SHAPES[name](np.random.default_rng(0), (100_000,))
    assert drawn.mean() == pytest.approx(0, abs=0.015)
    assert drawn.std() == pytest.approx(1, abs=0.015)


def test_resampled_residuals_are_a_shape():
    draw = resampled(np.array([1.0, 2.0, 6.0]))
    values = np.unique(draw(np.random.default_rng(0), (500,)))
    assert values.mean() == pytest.approx(0)
    assert values.std() == pytest.approx(1)


def test_an_unknown_shape_is_refused_and_no_draws_too():
    with pytest.raises(ValueError, match="did you mean 'normal'"):
        shape_of("norml")
    assert shape_of("tied") is SHAPES["tied"]
    with pytest.raises(ValueError, match="draws"):
        coverage(SHAPES["normal"], (1.0,), 6, draws=0)
