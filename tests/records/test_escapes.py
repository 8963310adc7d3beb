"""Counts of escapes, and escape times of the committed runs on Pathfinder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from depthpde.records.escapes import LEARNED_AT_ONCE, escape_rate, run_escape, standard_error
from depthpde.records.statistics.survival import kaplan_meier
from depthpde.records.verdicts import Outcome, judge_escape

TASK = "pathfinder-mini"


def escapes(evidence):
    """Return variant → seed → when the run left Pathfinder's plateau."""
    return {
        variant: {seed: run_escape(run, LEARNED_AT_ONCE[TASK]) for seed, run in runs.items()}
        for (task, variant), runs in evidence.runs.items()
        if task == TASK
    }


def test_every_baseline_escapes_and_two_of_six_with_diffusion_do(gathered):
    found = escapes(gathered["placement"])
    assert set(found) == set(gathered["placement"].variants)
    assert [each.escaped for each in found["baseline"].values()] == [True] * 6
    assert sum(each.escaped for each in found["after embedding"].values()) == 2
    assert kaplan_meier(list(found["baseline"].values())).median == 300
    assert kaplan_meier(list(found["after embedding"].values())).median is None


def test_with_three_times_the_updates_diffusion_is_shown_to_be_later(gathered):
    found = escapes(gathered["pathfinder-longer"])
    late = judge_escape(found["after embedding"], found["baseline"], sooner=False)
    assert late.outcome is Outcome.SUPPORTED
    assert late.p == 2.0**-5
    assert late.effect == 600


def test_a_run_without_a_result_has_no_time(gathered):
    run = next(iter(gathered["placement"].runs[TASK, "baseline"].values()))
    assert run_escape(replace(run, result=None), LEARNED_AT_ONCE[TASK]) is None


@pytest.mark.parametrize("points", [0, 3])
def test_a_run_that_diverged_on_its_plateau_stays_there_to_the_end(gathered, points, monkeypatch):
    """It was left out, or counted only up to where it broke: what breaks was missing."""
    run = gathered["placement"].runs[TASK, "baseline"][0]
    broken = replace(run, result=dict(run.result) | {"status": "diverged"})
    monkeypatch.setattr(type(run), "points", lambda self: points_of(points))
    found = run_escape(broken, LEARNED_AT_ONCE[TASK])
    assert (found.update, found.escaped) == (run.config["training"]["updates"], False)


def points_of(count):
    return [{"update": 10 * (k + 1), "accuracy": 50.0} for k in range(count)]


@pytest.mark.parametrize(
    ("accuracy", "examples", "points"),
    [(37, 2000, 1.08), (65, 25_000, 0.30), (42, 10_000, 0.49), (72, 20_000, 0.32)],
)
def test_sampling_error_of_the_lra_test_sets(accuracy, examples, points):
    assert standard_error(accuracy, examples) == pytest.approx(points, abs=0.005)


def test_runs_on_a_plateau_hardly_ever_count_as_escaped():
    seen = np.random.default_rng(0).binomial(2000, 0.5, 20_000) / 20
    assert escape_rate(seen, 50.0, examples=2000).rate < 0.003


def test_escape_rate_counts_jumps_with_an_exact_interval():
    found = escape_rate([50.1, 72.0, 49.4, 71.5], 50.0, examples=20_000)
    assert (found.escaped, found.n, found.rate) == (2, 4, 0.5)
    low, high = stats.beta.ppf([0.025, 0.975], [2, 3], [3, 2])
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: escape_rate([], 50.0, examples=10), "`accuracies` must be a list.*shape"),
        (lambda: standard_error(50.0, 0), "`examples` must be at least 1"),
        (lambda: standard_error(500.0, 10), r"`accuracy` must lie in \[0, 100\]"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("escaped", range(7))
def test_the_interval_of_a_rate_is_that_of_the_exact_binomial_test(escaped):
    found = escape_rate([90.0] * escaped + [50.0] * (6 - escaped), 50.0, examples=20_000)
    exact = stats.binomtest(escaped, 6).proportion_ci(0.95, method="exact")
    assert (found.interval.low, found.interval.high) == pytest.approx((exact.low, exact.high))
