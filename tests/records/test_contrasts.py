"""Contrasts: exact on made-up scores, and what the committed records show by them."""

from __future__ import annotations

import pytest

from depthpde.records.contrasts import (
    along,
    average_difference,
    contrast,
    difference,
    differences_of,
    fragility,
    interaction,
)
from depthpde.records.scores import scores_of
from depthpde.records.verdicts import Hypothesis, Outcome, judge

POSITIONS = (
    "after embedding",
    "before norm",
    "in attention",
    "in heads",
    "after attention",
    "after ffn",
    "between blocks",
)
SINGLES = ("slow", "medium", "fast")
SCORES = {
    "a": {"t": {0: 5.0, 1: 7.0}, "u": {0: 1.0}},
    "b": {"t": {0: 4.0, 1: 4.0, 2: 9.0}, "u": {0: 3.0}},
    "c": {"t": {0: 1.0, 1: 0.0}},
}


def test_a_difference_is_paired_by_seed():
    assert contrast(SCORES, difference("a", "b")) == {"t": {0: 1.0, 1: 3.0}, "u": {0: -2.0}}


def test_tasks_that_lack_a_variant_are_left_out():
    found = contrast(SCORES, average_difference(["a"], ["b", "c"]))
    assert found == {"t": {0: 2.5, 1: 5.0}}


def test_an_interaction_is_a_difference_of_differences():
    weights = interaction(difference("a", "b"), difference("b", "c"))
    assert weights == {"a": 1.0, "b": -2.0, "c": 1.0}
    assert contrast(SCORES, weights)["t"] == {0: 1.0 - 3.0, 1: 3.0 - 4.0}


def test_a_name_on_both_sides_is_counted_on_both():
    assert average_difference(["a", "b"], ["b"]) == {"a": 0.5, "b": -0.5}


def test_tasks_can_be_left_out_of_a_mean():
    found = contrast(SCORES, difference("a", "b"))
    assert differences_of(found, without=["u"]) == {"t": [1.0, 3.0]}


def test_a_contrast_along_training_skips_looks_without_its_variants():
    curves = {10: {"a": SCORES["a"], "b": SCORES["b"]}, 20: {"a": SCORES["a"]}}
    assert along(curves, difference("a", "b")) == {10: {"t": {0: 1.0, 1: 3.0}, "u": {0: -2.0}}}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: contrast(SCORES, {"a": 1.0}), "add up to 0.*1 over 1"),
        (lambda: contrast(SCORES, {"a": 0.0, "b": 0.0}), "not all be 0"),
        (lambda: contrast(SCORES, {"a": 1.0, "bb": -1.0}), "did you mean 'b'"),
        (lambda: average_difference([], ["a"]), "each name one"),
        (lambda: fragility({"t": {0: 1.0}}, Hypothesis()), "two tasks"),
    ],
)
def test_what_is_no_contrast_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_pooled_as_a_factorial_the_mix_is_the_mean_of_single_scales(gathered):
    scores = scores_of(gathered["multiscale-positions"])
    mixed = [f"{place}, mixed" for place in POSITIONS]
    singles = [f"{place}, {each}" for place in POSITIONS for each in SINGLES]
    found = judge(
        differences_of(contrast(scores, average_difference(mixed, singles))), Hypothesis()
    )
    assert found.outcome is Outcome.EQUIVALENT
    assert found.effect == pytest.approx(0.02, abs=0.005)
    assert found.interval.high < 0.25


@pytest.mark.parametrize(
    ("place", "effect", "outcome"),
    [
        ("after embedding", 1.73, "supported"),
        ("before norm", 1.59, "supported"),
        ("in attention", 1.00, "supported"),
        ("between blocks", -0.25, "inconclusive"),
    ],
)
def test_pooled_over_scales_three_positions_gain_on_listops(gathered, place, effect, outcome):
    scores = scores_of(gathered["multiscale-positions"])
    weights = average_difference([f"{place}, {s}" for s in (*SINGLES, "mixed")], ["baseline"])
    found = judge(differences_of(contrast(scores, weights)), Hypothesis())
    assert found.effect == pytest.approx(effect, abs=0.006)
    assert found.outcome == outcome


def test_diffusion_is_not_orthogonal_to_positions(gathered):
    scores = scores_of(gathered["positional"])
    gain = {each: difference(f"{each} + diffusion", each) for each in ("no sites", "learned sites")}
    weights = interaction(gain["no sites"], gain["learned sites"])
    found = judge(differences_of(contrast(scores, weights)), Hypothesis(sign=0, margin=0.75))
    assert found.outcome is Outcome.CONTRADICTED
    assert found.effect == pytest.approx(3.90, abs=0.005)
    assert (found.interval.low, found.interval.high) == pytest.approx((3.00, 4.79), abs=0.01)


def test_the_gain_on_listops_grows_along_training(gathered):
    curves = {}
    for (task, variant), runs in gathered["placement"].runs.items():
        for seed, run in runs.items():
            for look in run.validations():
                scores = curves.setdefault(look["update"], {}).setdefault(variant, {})
                scores.setdefault(task, {})[seed] = look["accuracy"]
    found = along(curves, difference("after embedding", "baseline"))
    gains = [
        sum(each["listops-mini"].values()) / 6 for each in found.values() if "listops-mini" in each
    ]
    assert gains == pytest.approx([-0.33, 0.75, 1.41, 1.66], abs=0.006)


def test_one_task_decides_the_headline(gathered):
    scores = scores_of(gathered["placement"])
    found = contrast(scores, difference("after embedding", "baseline"))
    claim = Hypothesis(size=4.07)
    whole = judge(differences_of(found), claim)
    assert whole.outcome is Outcome.INCONCLUSIVE
    assert whole.size_excluded
    without = fragility(found, claim)
    assert without["pathfinder-mini"].outcome is Outcome.SMALLER
    assert without["pathfinder-mini"].effect == pytest.approx(1.12, abs=0.005)
    assert {each.outcome for task, each in without.items() if task != "pathfinder-mini"} == {
        Outcome.INCONCLUSIVE
    }
