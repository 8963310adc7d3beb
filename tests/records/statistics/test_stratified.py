import numpy as np
import pytest

from depthpde.records.statistics.paired import compare
from depthpde.records.statistics.stratified import compare_over_tasks, paired

TASKS = ("a", "b", "c", "d", "e")


def runs(random, effect=0.0, seeds=6, spread=(1.0, 1.0, 1.0, 1.0, 1.0)):
    """Draw a variant's differences from a baseline that is zero everywhere."""
    drawn = {
        task: effect + wide * random.normal(size=seeds)
        for task, wide in zip(TASKS, spread, strict=True)
    }
    return {task: dict(enumerate(each.tolist())) for task, each in drawn.items()}


def zeros(seeds=6):
    return {task: dict.fromkeys(range(seeds), 0.0) for task in TASKS}


def over_tasks(tasks):
    """Average over tasks seed by seed: the comparison that pairs whole seeds."""
    return {seed: np.mean([runs[seed] for runs in tasks.values()]) for seed in tasks["a"]}


def test_balanced_mean_is_the_mean_over_tasks_of_each_seed():
    variant = runs(np.random.default_rng(0), 1.0)
    found = compare_over_tasks(zeros(), {"x": variant})["x"]
    by_seed = compare(over_tasks(zeros()), {"x": over_tasks(variant)})["x"]
    assert found.mean == pytest.approx(by_seed.mean)
    assert (found.n, found.tasks) == (30, 5)


def test_a_task_with_few_seeds_counts_as_much_as_one_with_many():
    variant = {"a": {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, "b": {0: 4.0, 1: 4.0}}
    base = {task: dict.fromkeys(each, 0.0) for task, each in variant.items()}
    assert compare_over_tasks(base, {"x": variant})["x"].mean == pytest.approx(2.0)


def test_one_task_is_what_its_sign_flips_do_not_reject():
    differences = dict(enumerate((0.3, 0.9, -0.2, 1.1, 0.4, 0.7)))
    base = dict.fromkeys(differences, 0.0)
    found = compare_over_tasks({"a": base}, {"x": {"a": differences}})["x"]
    single = compare(base, {"x": differences})["x"]
    ends = (single.interval.low, single.interval.high)
    assert (found.interval.low, found.interval.high) == pytest.approx(ends)
    assert found.p == pytest.approx(single.p)


@pytest.mark.parametrize("spread", [(1, 1, 1, 1, 1), (0.2, 0.5, 1, 2, 5)])
def test_intervals_hold_the_truth_as_often_as_they_say(spread):
    random = np.random.default_rng(1)
    hits = []
    for _ in range(600):  # six seeds: below, none is printed
        variant = runs(random, 0.5, seeds=6, spread=spread)
        found = compare_over_tasks(zeros(6), {"x": variant})["x"]
        hits.append(0.5 in found.interval)
    assert 0.93 <= np.mean(hits) <= 0.975  # three standard errors of 600 draws: 2.7 points


def test_false_findings_are_as_rare_as_the_level():
    random = np.random.default_rng(2)
    found = [
        compare_over_tasks(zeros(3), {"x": runs(random, seeds=3)})["x"].p <= 0.05
        for _ in range(600)
    ]
    assert 0.02 <= np.mean(found) <= 0.08


def test_thirty_pairs_reach_significance_among_a_dozen_variants_where_six_seeds_cannot():
    random = np.random.default_rng(3)
    variants = {f"v{i}": runs(random) for i in range(11)} | {"good": runs(random, 3.0)}
    found = compare_over_tasks(zeros(), variants)["good"]
    assert found.p_holm < 0.001
    assert found.warning is None
    means = {name: over_tasks(each) for name, each in variants.items()}
    by_seed = compare(over_tasks(zeros()), means)["good"]
    assert by_seed.p_holm > 0.3
    assert "cannot reach" in by_seed.warning


def test_one_pair_has_no_interval_and_says_too_few():
    found = compare_over_tasks({"a": {0: 1.0}}, {"x": {"a": {0: 2.5}}})["x"]
    assert (found.mean, found.interval) == (1.5, None)
    assert "cannot reach p" in found.warning


def test_equal_differences_say_that_their_interval_tells_nothing():
    base = {task: {seed: float(seed) for seed in range(6)} for task in "ab"}
    same = {task: {seed: seed + 1.0 for seed in range(6)} for task in "ab"}
    found = compare_over_tasks(base, {"x": same})["x"]
    assert found.interval.low == found.interval.high == 1.0
    assert "nothing about new runs" in found.interval.note


def test_below_six_pairs_on_a_task_there_is_no_interval():
    base = {task: dict.fromkeys(range(6), 0.0) for task in "ab"}
    variant = {"a": {s: s + 1.0 for s in range(6)}, "b": {s: s + 1.0 for s in range(5)}}
    found = compare_over_tasks(base, {"x": variant})["x"]
    assert (found.interval, found.n) == (None, 11)
    assert found.p < 0.05


def test_pairs_are_the_seeds_of_both_in_order():
    assert paired({2: 5.0, 1: 3.0, 7: 0.0}, {1: 1.0, 2: 1.0, 3: 9.0}) == {1: 2.0, 2: 4.0}
    assert list(paired({2: 5.0, 1: 3.0}, {1: 1.0, 2: 1.0})) == [1, 2]


@pytest.mark.parametrize(
    ("variant", "where"), [({"a": {5: 1.0}}, "on a;"), ({}, "on any task;"), ({"z": {0: 1.0}}, "z")]
)
def test_refuses_a_variant_without_a_pair(variant, where):
    with pytest.raises(ValueError, match=f"must share a seed with the baseline.*'x' .*{where}"):
        compare_over_tasks({"a": {0: 1.0}}, {"x": variant})
