"""What predictions show: where a gain lies, and how alike two systems are."""

from __future__ import annotations

import numpy as np
import pytest

from depthpde.records.predictions import (
    agreement_beyond_chance,
    agreements,
    gain_by_group,
    root_arguments,
)

# [MAX 4 3 [MIN 2 3 ] 1 ]   and   [SM [MED 1 2 ] [MED 5 5 ] ]
TOKENS = np.array([11, 4, 3, 10, 2, 3, 14, 1, 14, 13, 12, 1, 2, 14, 12, 5, 5, 14, 14])
OFFSETS = np.array([0, 9, 19])


def answers(evidence):
    """Return variant → task → seed → predicted classes."""
    found = {}
    for (task, variant), runs in evidence.runs.items():
        found.setdefault(variant, {})[task] = {s: run.predictions() for s, run in runs.items()}
    return found


def test_own_digits_of_a_root_are_counted_apart_from_nested_ones():
    own, arguments = root_arguments(TOKENS, OFFSETS)
    assert own.tolist() == [3, 0]
    assert arguments.tolist() == [4, 2]


def test_a_gain_is_counted_inside_its_group():
    labels, groups = np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1])
    ours = {0: np.array([0, 1, 0, 0]), 1: np.array([0, 0, 2, 3])}
    theirs = {0: np.array([0, 0, 2, 0]), 1: np.array([0, 0, 0, 0]), 2: labels}
    found = gain_by_group(ours, theirs, labels, groups)
    assert found == {0: {0: 50.0, 1: 0.0}, 1: {0: -50.0, 1: 100.0}}


def test_gains_of_groups_add_up_to_the_whole_gain(gathered):
    output = answers(gathered["placement"])
    ours, theirs = output["after embedding"]["text-mini"], output["baseline"]["text-mini"]
    random = np.random.default_rng(0)
    labels, groups = random.integers(0, 2, 4000), random.integers(0, 3, 4000)
    parts = gain_by_group(ours, theirs, labels, groups)
    shares = np.bincount(groups) / 4000
    for seed in ours:
        whole = 100 * (np.mean(ours[seed] == labels) - np.mean(theirs[seed] == labels))
        assert sum(shares[g] * parts[g][seed] for g in parts) == pytest.approx(whole)


def test_the_gain_on_listops_lies_where_the_root_has_digits_of_its_own(committed, gathered):
    from depthpde.data.recipes.listops import MINI, generate

    grids, records = committed
    output = answers(gathered["placement"])
    expressions, labels = generate(4000, 0, grammar=MINI)  # the test split comes first
    base = next(
        c.run
        for c in grids["placement"].cells
        if (c.task, c.variant, c.seed) == ("listops-mini", "baseline", 0)
    )
    right = 100 * np.mean(output["baseline"]["listops-mini"][0] == labels)
    assert right == pytest.approx(records[base].accuracy)  # these are the very examples
    own, arguments = root_arguments(expressions.tokens, expressions.offsets)
    groups = np.where(own == 0, 0, np.where(2 * own >= arguments, 2, 1))
    found = gain_by_group(
        output["after embedding"]["listops-mini"],
        output["baseline"]["listops-mini"],
        labels,
        groups,
    )
    means = {group: np.mean(list(each.values())) for group, each in found.items()}
    assert means[0] == pytest.approx(0.23, abs=0.01)
    assert means[2] == pytest.approx(2.50, abs=0.01)


def test_agreement_is_1_for_the_same_and_0_for_chance():
    random = np.random.default_rng(0)
    first, second = random.integers(0, 5, (2, 40_000))
    assert agreement_beyond_chance(first, first) == 1.0
    assert agreement_beyond_chance(first, second) == pytest.approx(0.0, abs=0.02)
    assert agreement_beyond_chance(first * 0, first * 0) == 0.0


def test_agreement_is_cohens():
    # Cohen's worked form: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: κ = 0.4.
    first = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
    second = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
    assert agreement_beyond_chance(first, second) == pytest.approx(0.4)


def test_like_with_like_two_systems_without_norms_agree_as_two_with_both(gathered):
    output = answers(gathered["stabilization"])

    def between(ours, theirs):
        found = agreements(output[ours], output[theirs])
        return np.mean([np.mean(list(each.values())) for each in found.values()])

    both = between("Transformer, both", "simulator, both")
    alike = between("Transformer, no norm", "simulator, no norm")
    unlike = between("Transformer, both", "simulator, no norm")
    assert abs(both - alike) < 0.03
    assert both - unlike > 0.15


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: root_arguments(TOKENS[:-1], OFFSETS), "19 symbols.*18"),
        (lambda: root_arguments(TOKENS + 1, OFFSETS), "shift"),
        (lambda: gain_by_group({0: TOKENS}, {0: TOKENS}, TOKENS, OFFSETS), "3, 19"),
        (lambda: agreement_beyond_chance(TOKENS, OFFSETS), "19 and 3"),
    ],
)
def test_wrong_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
