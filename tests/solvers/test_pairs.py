from dataclasses import replace

import pytest

from depthpde.solvers.pairs import PAIRS
from depthpde.solvers.tableau import order_by_conditions, stability_function

EVERY = pytest.mark.parametrize("tableau", list(PAIRS.values()), ids=list(PAIRS))


@EVERY
def test_both_rows_meet_the_conditions_of_the_order_they_declare(tableau):
    low = replace(tableau, b=tuple(b - e for b, e in zip(tableau.b, tableau.error, strict=True)))
    assert order_by_conditions(tableau) == tableau.order
    assert order_by_conditions(low) == tableau.error_order


@EVERY
def test_the_last_stage_is_the_first_of_the_next_step(tableau):
    assert tableau.a[-1] == tableau.b
    assert tableau.c[-1] == 1.0


@EVERY
def test_rows_sum_to_when_their_stage_looks(tableau):
    for row, at in zip(tableau.a, tableau.c, strict=True):
        assert sum(row) == pytest.approx(at, abs=1e-14)


@EVERY
def test_the_declared_interval_is_the_stable_one(tableau):
    end = tableau.real_axis
    assert all(abs(stability_function(tableau, -end * i / 200)) <= 1 + 1e-12 for i in range(201))
    assert abs(stability_function(tableau, -1.001 * end)) > 1
