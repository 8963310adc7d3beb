import dataclasses

import pytest
import torch

from depthpde.operators.boundary import Boundary
from depthpde.solvers.integrate import integrate
from depthpde.solvers.pairs import PAIRS
from depthpde.solvers.steppers.methods import (
    ADAMS,
    LONGEST_BASIS,
    ORDERS,
    build_stepper,
    choose_method,
)
from depthpde.solvers.term import Term, diffusion_term
from depthpde.solvers.tolerance import Tolerance
from solvers.steppers.problems import draw, logistic, logistic_exact, manufactured, observed_order

STEPS = {1: (160, 320), 2: (80, 160), 3: (40, 80), 4: (16, 32), 5: (48, 96)}
LOOSEST = {"etd1": 1e-3, "etd2": 1e-5}
"""A tolerance below takes a low order tens of thousands of steps, which prove nothing more."""
FIXED = [name for name in ORDERS if name != ADAMS]


@pytest.mark.parametrize("method", FIXED)
def test_the_observed_order_is_the_declared_one(method):
    terms, exact = manufactured(alpha=0.5 if method in PAIRS else 4.0)
    u0, order = exact(0.0), ORDERS[method]
    found = observed_order(
        lambda: build_stepper(method, terms, u0, None), u0, exact(1.0), STEPS[order]
    )
    assert found == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("method", ORDERS)
@pytest.mark.parametrize("rtol", [1e-3, 1e-5, 1e-7])
def test_the_error_is_within_ten_times_the_one_wanted(method, rtol):
    rtol = max(rtol, LOOSEST.get(method, 0.0))
    u0 = torch.full((1, 4, 1), 0.05, dtype=torch.float64)  # constant: nothing diffuses
    terms = (diffusion_term(0.5), Term(name="reaction", rhs=logistic))
    path = integrate(terms, u0, (0.0, 6.0), method=method, tolerance=Tolerance(rtol=rtol))
    exact = logistic_exact(u0, 6.0)
    error = float((path.final - exact).norm() / exact.norm())
    assert error <= 10 * rtol
    assert path.statistics.largest_error <= 1
    assert path.statistics.steps > 1


@pytest.mark.parametrize("boundary", list(Boundary))
@pytest.mark.parametrize("method", ["adams", "etd4", "etd4_stiff"])
def test_stiff_diffusion_costs_an_exponential_method_nothing(method, boundary):
    # The heat equation alone: a single step is exact at any stiffness.
    u0 = draw(2, 20, 3)
    term = diffusion_term(1e4, boundary=boundary)
    path = integrate(term, u0, (0.0, 0.3, 1.0), method=method)
    wanted = torch.stack([u0, term.flow(u0, 0.0, 0.3), term.flow(u0, 0.0, 1.0)])
    torch.testing.assert_close(path.states, wanted, rtol=0, atol=1e-12)
    assert path.statistics.rejected == 0


def test_causal_transport_is_exact_too():
    from depthpde.solvers.term import transport_term

    u0 = draw(1, 9, 2)
    rate = torch.tensor([3.0, 0.4], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 1, 1, 0, 1, 1, 1]]).bool()
    term = transport_term(rate, valid_mask=mask)
    path = integrate(term, u0, (0.0, 2.0), method="etd1")
    wanted = integrate(term, u0, (0.0, 2.0), method="rk4", substeps=2000).final
    torch.testing.assert_close(path.final, wanted, rtol=0, atol=1e-10)


def test_a_hard_sample_leaves_the_others_within_tolerance():
    easy, hard = torch.full((1, 4, 1), 0.5).double(), torch.full((1, 4, 1), 1e-6).double()
    wild = Term(name="reaction", rhs=lambda u, t: logistic(u, t) * (1 + 5 * torch.sin(20 * u)))
    alone = integrate(wild, easy, (0.0, 8.0), method="adams").final
    both = integrate(wild, torch.cat([easy, hard]), (0.0, 8.0), method="adams").final
    assert float((both[:1] - alone).norm() / alone.norm()) <= 1e-5


def test_an_implicit_pair_needs_a_linear_term():
    with pytest.raises(ValueError, match=r"must not be 'ark4'.*without a linear term.*'adams'"):
        build_stepper("ark4", (Term(name="reaction", rhs=logistic),), draw(1, 2, 1), None)


def test_adams_cannot_be_given_steps():
    with pytest.raises(ValueError, match=r"`substeps` must be left out for 'adams'.*rtol"):
        build_stepper(ADAMS, (diffusion_term(1.0),), draw(1, 4, 1), None)


def test_auto_integrates_diffusion_exactly_while_a_basis_is_cheap():
    terms = (diffusion_term(5.0), Term(name="reaction", rhs=logistic))
    name, why = choose_method(terms, draw(1, 16, 1), 0.0)
    assert name == "adams"
    assert "20" in why, "four times the diffusivity"


def test_auto_solves_or_steps_where_a_basis_would_be_too_large():
    u = draw(1, LONGEST_BASIS + 1, 1)
    reaction = Term(name="reaction", rhs=lambda u, t: -3 * u)
    name, why = choose_method((diffusion_term(5.0), reaction), u, 0.0)
    assert name == "ark4"
    assert "20 against 3 of the rest" in why
    assert choose_method((diffusion_term(0.1), reaction), u, 0.0)[0] == "tsit5"


def test_auto_without_diffusion_says_so():
    name, why = choose_method((Term(name="reaction", rhs=logistic),), draw(1, 4, 1), 0.0)
    assert name == "adams"
    assert "no linear term" in why


def test_declared_limits_do_not_stop_an_exponential_method():
    term = dataclasses.replace(diffusion_term(300.0), flow=None)
    path = integrate(term, draw(1, 8, 1), (0.0, 1.0), method="auto")
    assert path.method == "adams"
    assert "integrated exactly" in path.message
