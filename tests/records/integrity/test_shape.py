"""A result whose numbers contradict each other is refused, with or without checksums."""

from __future__ import annotations

import pytest

from depthpde.records.integrity.shape import RESULT, STATUS, miscounted, misshapen

COUNTS = {"accuracy": 25.65, "correct": 1026, "targets": 4000}


def test_an_edited_accuracy_is_found_by_its_own_counts():
    assert miscounted(COUNTS) == ""
    printed = miscounted(COUNTS | {"accuracy": 95.65})
    assert "25.65 for 1026 of 4000" in printed
    assert "95.65" in printed


@pytest.mark.parametrize("targets", [1, 3, 48, 4000, 10_000_000])
def test_every_true_accuracy_passes(targets):
    for correct in {0, 1, targets // 3, targets}:
        counts = {"accuracy": 100 * correct / targets, "correct": correct, "targets": targets}
        assert miscounted(counts) == ""


@pytest.mark.parametrize("change", [{"correct": 5000}, {"targets": 0}, {"correct": "9"}])
def test_counts_that_are_none_are_refused(change):
    assert "must count" in miscounted(COUNTS | change)


def test_a_test_without_counts_is_taken_as_it_is():
    assert miscounted({"accuracy": 61.5}) == ""


def test_the_first_value_of_a_wrong_kind_is_named():
    assert misshapen({}, STATUS) == misshapen({"seconds": 3}, RESULT) == ""
    assert misshapen({"updates": -1}, STATUS).startswith("updates must be a whole number, got")
    assert "notes must be a list of texts" in misshapen({"notes": [3]}, RESULT)
