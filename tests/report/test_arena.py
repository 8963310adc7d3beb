import numpy as np
import pytest
from scipy import stats

from depthpde.report.arena import (
    FIVE,
    TRIVIAL,
    escape_rate,
    lines_passed,
    lra_averages,
    standard_error,
)

VANILLA = dict(zip(FIVE, (36.37, 64.27, 57.46, 42.44, 71.40), strict=True))
MEGA = dict(zip(FIVE, (63.14, 90.43, 91.25, 90.44, 96.01), strict=True), pathx=97.98)


def test_both_averages_of_published_rows():
    vanilla = lra_averages({**VANILLA, "pathx": None})
    assert vanilla.five == pytest.approx(54.39, abs=0.005)
    assert vanilla.six == pytest.approx(53.66, abs=0.005)
    mega = lra_averages(MEGA)
    assert mega.five == pytest.approx(86.25, abs=0.005)
    assert mega.six == pytest.approx(88.21, abs=0.005)


def test_six_task_average_is_none_where_pathx_was_not_tried():
    assert lra_averages(VANILLA).six is None


def test_one_plateau_jump_is_four_points_of_the_average():
    jumped = {**VANILLA, "listops": VANILLA["listops"] + 20}
    assert lra_averages(jumped).five - lra_averages(VANILLA).five == pytest.approx(4.0)


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


def test_published_transformers_have_passed_one_line_of_listops():
    lines = TRIVIAL["listops"]
    assert lines_passed(36.37, lines, examples=2000) == ["majority"]
    assert lines_passed(17.0, lines, examples=2000) == []
    assert lines_passed(60.0, lines, examples=2000) == list(lines)


def test_every_task_has_its_line_between_chance_and_certainty():
    assert set(TRIVIAL) == {*FIVE, "pathx"}
    assert all(0 < line < 100 for lines in TRIVIAL.values() for line in lines.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lra_averages({"listops": 1.0}), "got none for text, retrieval, image, pathfinder"),
        (lambda: lra_averages({**VANILLA, "path-x": 1.0}), "did you mean 'pathx'"),
        (lambda: lra_averages({**VANILLA, "text": 6427}), r"`text` must lie in \[0, 100\]"),
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
