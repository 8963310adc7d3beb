import math

import pytest
import torch

from depthpde.solvers.tolerance import FASTEST, SLOWEST, Tolerance, next_factor


@pytest.mark.parametrize("value", [0.0, -1e-6, math.nan, math.inf])
def test_refuses_tolerances_that_nothing_can_meet(value):
    with pytest.raises(ValueError, match=r"`rtol` must be positive and finite.*1e-6"):
        Tolerance(rtol=value)
    with pytest.raises(ValueError, match="`atol` must be positive"):
        Tolerance(atol=value)


def test_refuses_a_tolerance_below_rounding():
    u = torch.zeros(1, 1, 1)
    Tolerance(rtol=1e-6).check(u)
    with pytest.raises(ValueError, match=r"`rtol` must be at least 1e-06 .*float32.*float64"):
        Tolerance(rtol=1e-7).check(u)
    Tolerance(rtol=1e-14).check(u.double())


def test_the_worst_sample_counts_and_each_is_measured_by_its_own_size():
    u = torch.stack([torch.full((4, 2), 1.0), torch.full((4, 2), 100.0)]).double()
    error = torch.stack([torch.full((4, 2), 1e-6), torch.full((4, 2), 1e-4)]).double()
    assert Tolerance(rtol=1e-6).ratio(error, u, u) == pytest.approx(1.0, rel=1e-2)
    assert Tolerance(rtol=1e-6).ratio(error[:1], u[1:], u[1:]) == pytest.approx(0.01, rel=1e-2)


def test_the_norm_is_the_same_in_every_orthonormal_basis():
    u, error = torch.randn(2, 6, 3).double(), torch.randn(2, 6, 3).double()
    turn = torch.linalg.qr(torch.randn(6, 6).double()).Q
    tolerance = Tolerance(rtol=1e-3)
    ratio = tolerance.ratio(error, u, u)
    assert tolerance.ratio(turn @ error, turn @ u, turn @ u) == pytest.approx(ratio)


def test_what_is_no_number_is_told():
    u = torch.ones(1, 2, 1)
    assert math.isnan(Tolerance().ratio(u * math.nan, u, u))
    assert next_factor(math.nan, 1.0, 5) == SLOWEST
    assert Tolerance().first_step(u, u * math.nan, 4) < 1e-9


def test_a_controller_shortens_what_was_wrong_and_lengthens_what_was_right():
    assert next_factor(32.0, 1.0, 5) == pytest.approx(0.45)
    assert next_factor(1e9, 1.0, 5) == SLOWEST
    assert next_factor(0.0, 1.0, 5) == FASTEST
    assert next_factor(0.5, 0.5, 5) == pytest.approx(0.9 * 0.5 ** (-0.3 / 5))


def test_the_first_step_follows_the_fastest_sample():
    u = torch.ones(2, 3, 1).double()
    rate = torch.stack([torch.ones(3, 1), 100 * torch.ones(3, 1)]).double()
    slow = Tolerance(rtol=1e-4).first_step(u[:1], rate[:1], 3)
    assert slow == pytest.approx(0.05, rel=1e-2)
    assert Tolerance(rtol=1e-4).first_step(u, rate, 3) == pytest.approx(slow / 100)
