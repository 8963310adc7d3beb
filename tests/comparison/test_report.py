"""Verdicts are those of the one scale; less loss is a gain; the table says what was found."""

import json
from dataclasses import replace

import pytest

from depthpde.comparison.entrant import Entrant, place_of
from depthpde.comparison.report import ComparisonReport
from depthpde.records.learning_curves import join
from depthpde.records.scores import Endpoint


def entrant(label, scores):
    return Entrant(label=label, scores=dict(enumerate(scores)), curve=join([]), parameters=10)


def report(*columns, endpoint=Endpoint.LOSS):
    entrants = [entrant(f"v{k}", each) for k, each in enumerate(columns)]
    return ComparisonReport(task="t", endpoint=endpoint, entrants=entrants)


BASE = [2.0, 2.1, 1.9, 2.05, 1.95, 2.02]


@pytest.mark.parametrize(("change", "word"), [(-0.3, "better"), (0.3, "worse"), (0.0, "the same")])
def test_less_loss_is_better(change, word):
    noise = (0.001, -0.002, 0.003, -0.001, 0.002, -0.003)
    found = report(BASE, [b + change + n for b, n in zip(BASE, noise, strict=True)])
    assert found.verdict("v1") == word
    assert found.gains(found.entrants[1])[0] == pytest.approx(-change - 0.001)


def test_three_pairs_carry_no_verdict_and_six_are_asked_for():
    found = report(BASE[:3], [b - 0.3 for b in BASE[:3]])
    assert found.verdict("v1") == "inconclusive"
    assert "3 of 3 pairs" in found.sentences()[0]
    assert "seeds=6" in found.advice()


def test_a_variant_that_always_diverges_is_not_asked_for_more_seeds():
    """It was told to be called again with the six seeds that it had."""
    found = report(BASE, [])
    wild = replace(found.entrants[1], diverged=6)
    found = replace(found, entrants=[found.entrants[0], wild])
    assert found.advice().startswith("every run of v1 diverged and has no loss: train more gently")


def test_several_variants_are_corrected_for_their_number():
    shifts = (-0.02, -0.01, -0.03, -0.02, -0.01, -0.015)
    better = [b + s for b, s in zip(BASE, shifts, strict=True)]
    alone = report(BASE, better).verdicts["v1"].p
    among = report(BASE, better, *([BASE[1:] + BASE[:1]] * 3)).verdicts["v1"].p
    assert among > alone


@pytest.mark.parametrize(("variants", "least"), [(1, 6), (2, 7), (3, 7), (4, 8)])
def test_the_least_pairs_are_those_with_which_the_correction_can_be_passed(variants, least):
    noise = (0.001, -0.002, 0.003, -0.001, 0.002, -0.003, 0.004, -0.004)
    base = [2.0 + 0.01 * k for k in range(least)]
    better = [b - 0.3 + n for b, n in zip(base, noise, strict=False)]
    found = report(base, *[better] * variants)
    assert found.least_pairs == least
    assert {found.verdict(f"v{k + 1}") for k in range(variants)} == {"better"}
    if least > 6:
        fewer = report(base[:-1], *[better[:-1]] * variants)
        assert fewer.verdict("v1") == "inconclusive"


def test_more_accuracy_is_better():
    found = report([50.0] * 6, [60.0, 61.0, 62.0, 60.5, 61.5, 62.5], endpoint=Endpoint.ACCURACY)
    assert found.verdict("v1") == "better"
    assert found.unit == "points"


def test_the_table_json_and_html_hold_the_numbers(compared):
    assert "accuracy, %" in str(compared)
    assert "inconclusive" in str(compared)
    plain = json.loads(json.dumps(compared.to_dict()))
    assert plain["variants"]["diffusion"]["scores"].keys() == {"0", "1"}
    assert "<table" in compared._repr_html_()


def test_places_are_named_by_block_and_position():
    assert place_of("encoder.placed.layers.after_embedding.ratio") == "after embedding"
    assert place_of("encoder.blocks.1.placed.layers.after_ffn.ratio") == "block 2, after ffn"
    assert place_of("something.ratio") == "something"
