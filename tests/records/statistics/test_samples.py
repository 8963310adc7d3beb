"""Samples are checked where they enter."""

from __future__ import annotations

import pytest

from depthpde.records.statistics.samples import check_sample, check_strata


def test_numbers_come_back_as_they_were():
    assert check_sample("d", [1, 2.5]).tolist() == [1.0, 2.5]
    assert [each.tolist() for each in check_strata({"a": [1], "b": [2, 3]})] == [[1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check_sample("d", [1.0], at_least=2), r"at least 2 .*\[1\].*seeds"),
        (lambda: check_sample("d", [[1.0, 2.0]]), r"\[1, 2\]"),
        (lambda: check_sample("d", [1.0, float("nan")]), "finite.*nan"),
        (lambda: check_strata({}), "at least one task"),
        (lambda: check_strata({"text": []}), "`text`"),
    ],
)
def test_what_is_no_sample_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
