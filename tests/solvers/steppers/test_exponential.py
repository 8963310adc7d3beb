import pytest
import torch

from depthpde.operators.boundary import Boundary
from depthpde.solvers.linear.generator import Nothing
from depthpde.solvers.steppers.exponential import EXPONENTIAL, ExponentialStepper
from depthpde.solvers.steppers.methods import build_stepper
from depthpde.solvers.term import Term
from solvers.steppers.problems import draw, manufactured, march, observed_order


def stiff_order(method, alpha=101.0**2, sites=100, **problem):
    terms, exact = manufactured(alpha=alpha, sites=sites, **problem)
    return observed_order(
        lambda: build_stepper(method, terms, exact(0.0), None), exact(0.0), exact(1.0), (16, 32)
    )


def test_hochbruck_and_ostermann_keep_order_four_where_diffusion_is_stiff():
    assert stiff_order("etd4_stiff", boundary=Boundary.FIXED) == pytest.approx(4, abs=0.15)
    assert stiff_order("etd4_cox_matthews", boundary=Boundary.FIXED) < 3


def test_krogstads_stages_lose_more_than_theirs_at_an_angle():
    hard = {"alpha": 57600.0, "sites": 24, "angle": True}
    assert stiff_order("etd4_stiff", **hard) > stiff_order("etd4", **hard) + 0.8


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_rows_are_consistent_for_a_constant_rate(name):
    # With L = 0 and N = 1 every stage stands at c_i and the step at 1.
    tableau = EXPONENTIAL[name]
    seen = []

    def rest(u, t):
        seen.append((float(u.flatten()[0]), t))
        return torch.ones_like(u)

    stepper = ExponentialStepper(Nothing(), Term(name="one", rhs=rest), tableau, None)
    u = march(stepper, torch.zeros(1, 1, 1, dtype=torch.float64), 1.0, 1)
    assert float(u.flatten()[0]) == pytest.approx(1.0, abs=1e-15)
    for (value, t), c in zip(seen[: len(tableau.c)], tableau.c, strict=True):
        assert value == pytest.approx(c, abs=1e-15)
        assert t == c


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_the_error_row_sees_nothing_where_the_rate_is_constant(name):
    from depthpde.solvers.tolerance import Tolerance

    rest = Term(name="one", rhs=lambda u, t: torch.ones_like(u))
    stepper = ExponentialStepper(Nothing(), rest, EXPONENTIAL[name], Tolerance(rtol=1e-6))
    assert stepper.attempt(stepper.start(draw(1, 2, 1), 0.0), 0.5).error < 1e-8
