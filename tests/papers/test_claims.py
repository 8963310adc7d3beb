"""Claims are judged by the one rule: side, size, margin, pairs; each a gate to the next."""

import math
from dataclasses import replace

import pytest

from depthpde.papers.claims import (
    Judged,
    by_holm,
    effect_claim,
    escape_claim,
    in_order,
    measured_claim,
    number_claim,
    order_claim,
    slope,
    spread,
)
from depthpde.records.contrasts import difference
from depthpde.records.scores import scores_of
from depthpde.records.verdicts import Hypothesis, Outcome
from papers.invented import evidence

SIX = [2.0, 2.1, 1.9, 2.0, 2.2, 1.8]


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        (SIX, Outcome.SUPPORTED),
        ([0.5, 0.6, 0.4, 0.5, 0.6, 0.4], Outcome.SMALLER),
        ([-each for each in SIX], Outcome.CONTRADICTED),
        ([0.01, -0.02, 0.01, 0.0, 0.02, -0.01], Outcome.EQUIVALENT),
        ([3.0, -3.2, 2.5, -2.4, 3.1, -3.0, 2.2, -2.1], Outcome.INCONCLUSIVE),
        ([2.0, 2.1, 1.9, 2.0, 2.2], Outcome.INCONCLUSIVE),  # five pairs tell nothing
    ],
)
def test_a_verdict_follows_interval_and_test(values, outcome):
    found = number_claim("claim", "by {mean:.1f}", {"t": values}, mark=1.0)
    assert isinstance(found, Judged)
    row = found.row()
    assert row.verdict is outcome
    assert row.n == len(values)
    assert row.finding.startswith(f"by {sum(values) / len(values):.1f}")
    assert row.effect == pytest.approx(sum(values) / len(values))
    assert (row.interval is None) == (row.least is None) == (len(values) < 6)


def test_tasks_are_strata_and_what_is_no_number_is_left_out():
    apart = {"a": [each + 10 for each in SIX], "b": [*SIX, math.nan]}
    row = number_claim("claim", "by {mean:.1f}", apart).row()
    assert (row.n, row.finding) == (12, "by 7.0")
    assert row.interval[1] - row.interval[0] < 1.0, "the gap between tasks is no noise"
    none = number_claim("claim", "by {mean:.1f}", {"a": [math.nan]})
    assert (none.verdict, none.n) == (Outcome.INCONCLUSIVE, 0)


def test_a_gate_that_is_not_shown_closes_what_follows_and_says_which():
    noise = [3.0, -3.2, 2.5, -2.4, 3.1, -3.0]
    claims = [
        number_claim("Paper: first.", "f", {"t": SIX}),
        number_claim("Paper: second.", "f", {"t": noise}),
        number_claim("Paper: third.", "f", {"t": SIX}),
    ]
    rows = in_order(claims)
    assert [each.verdict for each in rows] == [
        Outcome.SUPPORTED,
        Outcome.INCONCLUSIVE,
        Outcome.INCONCLUSIVE,
    ]
    assert rows[2].finding == "f; not reached: second was not shown"
    assert [each.closed_by for each in rows] == ["", "", "second"]
    assert rows[1].p > 0.05 > rows[0].p
    assert rows[2].p is None, (
        "it was not tested: the p of the gate is no p of what stands behind it"
    )


def test_holm_asks_the_best_of_many_for_more():
    claims = [number_claim(f"q{k}", "f", {"t": SIX}) for k in range(3)]
    rows = by_holm(claims)
    assert [each.p for each in rows] == [3 / 32] * 3
    assert {each.verdict for each in rows} == {Outcome.INCONCLUSIVE}
    assert by_holm(claims[:1])[0].verdict is Outcome.SUPPORTED
    few = [number_claim("few", "f", {"t": []}), claims[0]]
    assert [each.verdict for each in by_holm(few)] == [Outcome.INCONCLUSIVE, Outcome.SUPPORTED]


@pytest.mark.parametrize(
    ("share", "outcome"),
    [(0.98, Outcome.SUPPORTED), (0.7, Outcome.SMALLER), (0.3, Outcome.CONTRADICTED)],
)
def test_a_share_is_measured_from_a_half(share, outcome):
    values = [share + 0.002 * k for k in range(-3, 4)]
    found = measured_claim("c", "{mean:.2f}", {"t": values}, mark=0.95, zero=0.5)
    assert found.verdict is outcome
    assert found.effect == pytest.approx(share)
    assert found.interval[0] < share < found.interval[1]
    assert found.p is None
    assert measured_claim("c", "{mean:.2f}", {}, mark=0.9).n == 0


@pytest.mark.parametrize("together", [in_order, by_holm])
def test_claims_of_the_same_words_keep_their_own_numbers(together):
    """Keyed by its words behind the colon, the second had the verdict of the last."""
    sizes = (3.0, 2.0, -1.0)
    found = [
        number_claim("A: it is more.", "{mean:.1f}", {"t": [size + 0.01 * k for k in range(8)]})
        for size in sizes
    ]
    rows = together(found)
    assert [round(row.effect) for row in rows] == [3, 2, -1]
    wanted = [Outcome.SUPPORTED, Outcome.SUPPORTED, Outcome.CONTRADICTED]
    assert [found[k].verdict.outcome for k in range(3)] == wanted


def test_the_order_names_the_claim_that_closed_the_way():
    none = number_claim("A: it is more.", "", {"t": [-0.4, 0.5, -0.3, 0.2, 0.1, -0.2]})
    sure = number_claim("B: it is more.", "", {"t": [3.0, 3.1, 3.2, 3.3, 3.1, 3.0]})
    rows = in_order([sure, none, sure])
    assert [row.verdict for row in rows[::2]] == [Outcome.SUPPORTED, Outcome.INCONCLUSIVE]
    assert "not reached: it is more was not shown" in rows[2].finding
    assert "not reached" not in rows[0].finding + rows[1].finding


@pytest.mark.parametrize(
    ("middle", "outcome"),
    [
        (1.0, Outcome.SUPPORTED),
        (0.6, Outcome.SMALLER),
        (2.0, Outcome.CONTRADICTED),
        (-0.5, Outcome.CONTRADICTED),
        (0.76, Outcome.INCONCLUSIVE),
    ],
)
def test_an_order_is_supported_within_its_tolerance_only(middle, outcome):
    slopes = [middle + 0.02 * k for k in range(-3, 4)]
    found = order_claim("c", "{mean:.2f}", {"t": slopes}, wanted=1.0)
    assert found.verdict is outcome
    assert found.effect == pytest.approx(middle)
    assert order_claim("c", "{mean:.2f}", {}, wanted=1.0).n == 0


def test_pathfinder_stands_in_no_mean_and_is_told_beside_it():
    found = evidence({"after embedding": 2.0}, tasks=("text-mini", "pathfinder-mini"))
    weights = difference("after embedding", "baseline")
    row = effect_claim(found, "c", weights, Hypothesis(), what="one − none").row()
    assert row.n == 8
    assert "one − none, 1 task (" in row.finding
    assert "with Pathfinder, which counts escapes)" in row.finding
    assert escape_claim(found, "c", "after embedding", sooner=True) == [], "no training curves"


def test_the_slope_of_a_power_law_is_its_power():
    sizes = (4, 8, 16)
    assert slope(sizes, [3 * n**-2.5 for n in sizes]) == pytest.approx(2.5)
    assert math.isnan(slope(sizes, [1.0, 0.0, 1.0])), "an error of zero has no logarithm"
    assert math.isnan(slope((4,), [1.0]))


def test_a_spread_says_what_there_is():
    assert spread([]) == "–"
    assert spread([None, 2.5]) == "2.5"
    assert spread([1.0, 2.0, 3.0, None]) == "2 ± 2.5"


def broken(found, counts):
    """Let the first runs of some variants diverge."""
    runs = {
        (task, variant): {
            seed: replace(run, result=dict(run.result) | {"status": "diverged"})
            if seed < counts.get(variant, 0)
            else run
            for seed, run in each.items()
        }
        for (task, variant), each in found.runs.items()
    }
    return replace(found, runs=runs)


def test_runs_that_diverged_are_counted_beside_what_they_decide():
    made = broken(evidence({"a": 3.0}), {"a": 1})
    row = effect_claim(made, "c", difference("a", "baseline"), Hypothesis(), what="w").row()
    assert "; diverged: a 2 of 16" in row.finding


def test_two_sides_that_diverged_whole_compare_nothing_that_was_measured():
    """Both count as the largest class: their difference was 0, and the verdict equivalent."""
    made = broken(evidence({"a": 3.0, "b": 1.0}), {"a": 8, "b": 8})
    found = effect_claim(made, "c", difference("a", "b"), Hypothesis(), what="w")
    assert (found.verdict, found.n, found.p) == (Outcome.INCONCLUSIVE, 16, None)
    assert found.finding.endswith("laid down, not measured")
    one = effect_claim(made, "c", difference("a", "baseline"), Hypothesis(sign=-1), what="w")
    assert "laid down" not in one.row().finding


@pytest.mark.parametrize("tasks", [("text-mini", "image-mini"), ("text-mini", "pathfinder-mini")])
def test_a_task_on_which_both_sides_diverged_makes_nothing_equivalent(tasks):
    """Its zeros halved a difference beyond the margin; Pathfinder, in no mean, hid them all."""
    made = evidence({"a": 1.0, "b": 0.0}, tasks=tasks)
    lost = broken(made, {"a": 8, "b": 8})
    runs = {cell: (lost if cell[0] == tasks[0] else made).runs[cell] for cell in made.runs}
    runs = {
        cell: {
            seed: replace(run, result=dict(run.result) | {"trivial": {"majority": 10.0}})
            for seed, run in each.items()
        }
        for cell, each in runs.items()
    }
    same = Hypothesis(sign=0, margin=0.75)
    found = effect_claim(replace(made, runs=runs), "c", difference("a", "b"), same, what="w")
    assert (found.verdict, found.p) == (Outcome.INCONCLUSIVE, None)
    where = "" if "pathfinder-mini" in tasks else " on text-mini"
    assert found.finding.endswith(f"what is compared{where} was laid down, not measured")


def test_a_claim_names_the_task_whose_reading_is_missing():
    found = evidence({"wide": 3.0}, seeds=6)
    scores = {name: {"text-mini": each["text-mini"]} for name, each in scores_of(found).items()}
    weights, hypothesis = difference("wide", "baseline"), Hypothesis()
    row = effect_claim(found, "c", weights, hypothesis, what="w − b", scores=scores)
    assert (row.verdict, row.n) == (Outcome.INCONCLUSIVE, 6)
    assert row.finding.endswith("points; 0 pairs on image-mini, 6 on every task are wanted")


def test_a_claim_counts_the_runs_that_broke_and_how():
    found = evidence({"wide": 3.0}, seeds=6)
    broken = {"trivial": {"majority": 10.0}}
    ends = {0: {"status": "diverged"}, 1: {"test": None}, 2: {"test": None}}
    cell = ("text-mini", "wide")
    runs = {
        seed: replace(run, result=dict(run.result) | broken | ends.get(seed, {}))
        for seed, run in found.runs[cell].items()
    }
    found = replace(found, runs={**found.runs, cell: runs})
    claim = effect_claim(found, "c", difference("wide", "baseline"), Hypothesis(), what="w − b")
    assert claim.row().n == 12
    assert "; diverged: wide 1 of 12; without a test result: wide 2 of 12" in claim.words
