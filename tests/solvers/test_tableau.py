import math

import pytest

from depthpde.solvers.tableau import (
    RK4,
    TABLEAUS,
    Tableau,
    find_tableau,
    order_by_conditions,
    stability_function,
)

EVERY = pytest.mark.parametrize("tableau", list(TABLEAUS.values()), ids=list(TABLEAUS))


@EVERY
def test_declared_order_is_the_order_the_conditions_give(tableau: Tableau) -> None:
    assert order_by_conditions(tableau) == tableau.order


@EVERY
def test_stages_look_where_their_rows_sum_to(tableau: Tableau) -> None:
    for row, at in zip(tableau.a, tableau.c, strict=True):
        assert sum(row) == pytest.approx(at, abs=1e-15)


@EVERY
def test_stages_need_none_that_come_later(tableau: Tableau) -> None:
    for index, row in enumerate(tableau.a):
        assert all(entry == 0 for entry in row[index + 1 :])


@EVERY
def test_declared_interval_is_where_the_stability_function_stays_within_one(
    tableau: Tableau,
) -> None:
    end = min(tableau.real_axis, 1e4)
    assert all(abs(stability_function(tableau, -end * i / 200)) <= 1 + 1e-12 for i in range(201))
    if math.isfinite(tableau.real_axis):
        assert abs(stability_function(tableau, -1.001 * tableau.real_axis)) > 1
        assert not tableau.real_axis > 1e4


@EVERY
def test_stability_function_agrees_with_the_exponential_to_the_declared_order(
    tableau: Tableau,
) -> None:
    errors = [abs(stability_function(tableau, -z) - math.exp(-z)) for z in (0.1, 0.05)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(tableau.order + 1, abs=0.15)


def test_a_name_and_the_tableau_itself_are_the_same() -> None:
    assert find_tableau("rk4") is find_tableau(RK4) is RK4
    assert all(name == tableau.name for name, tableau in TABLEAUS.items())


def test_implicit_methods_know_that_they_are() -> None:
    implicit = {name for name, tableau in TABLEAUS.items() if not tableau.is_explicit}
    assert implicit == {"backward_euler", "crank_nicolson"}


def test_refuses_an_unknown_method_and_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"`method` must be one of euler.*did you mean 'rk4'"):
        find_tableau("rk5")
