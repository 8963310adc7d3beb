"""A fixed order: each contrast is a gate to the next."""

from __future__ import annotations

import numpy as np
import pytest

from depthpde.records.statistics.fixed_order import in_fixed_order


def test_the_first_that_is_not_shown_closes_the_rest():
    found = in_fixed_order({"a": 0.01, "b": 0.2, "c": 0.001})
    assert [each.shown for each in found.values()] == [True, False, False]
    assert found["b"].open
    assert not found["c"].open
    assert found["c"].closed_by == "b"
    assert found["c"].adjusted == 0.2
    assert found["a"].closed_by == found["b"].closed_by == ""


def test_nothing_is_paid_for_the_number_of_contrasts():
    found = in_fixed_order({str(k): 0.049 for k in range(20)})
    assert all(each.shown for each in found.values())


def test_any_false_finding_is_rare_though_the_first_is_true():
    random = np.random.default_rng(0)
    wrong = 0
    for p in random.random((4000, 4)):
        found = in_fixed_order({"true": 0.0, **{str(k): each for k, each in enumerate(p)}})
        wrong += any(each.shown for name, each in found.items() if name != "true")
    assert wrong / 4000 == pytest.approx(0.05, abs=0.011)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_p_lies_between_0_and_1(p):
    with pytest.raises(ValueError, match="late contrast"):
        in_fixed_order({"late contrast": p})
