import math

import pytest
import torch

from depthpde.solvers.integrate import integrate
from depthpde.solvers.segment import Hermite, monomials
from depthpde.solvers.steppers.methods import ORDERS, build_stepper
from depthpde.solvers.tolerance import Tolerance
from solvers.steppers.problems import logistic, logistic_exact, manufactured


def test_newtons_polynomials_are_expanded_in_powers():
    nodes = [1.0, 0.0, -0.5]
    table = monomials(nodes)
    for x in (-1.0, 0.3, 2.0):
        wanted = [1.0, x - 1, (x - 1) * x, (x - 1) * x * (x + 0.5)]
        powers = torch.tensor([x**m / math.factorial(m) for m in range(4)]).double()
        assert (table @ powers).tolist() == pytest.approx(wanted)


def test_a_cubic_is_read_exactly_and_its_slopes_only_when_it_is():
    calls = []

    def rate(u, t):
        calls.append(t)
        return torch.full_like(u, 3 * t**2)

    ends = tuple(torch.full((1, 1, 1), t**3).double() for t in (1.0, 3.0))
    segment = Hermite(start=1.0, end=3.0, states=ends, rate=rate)
    assert calls == []
    assert float(segment.at(2.0)) == pytest.approx(8.0)
    assert float(segment.at(2.5)) == pytest.approx(15.625)
    assert calls == [1.0, 3.0]


def middle_error(method, dt):
    terms, exact = manufactured(alpha=1.0)
    stepper = build_stepper(method, terms, exact(0.0), None)
    state, worst = stepper.start(exact(0.0), 0.0), 0.0
    while state.t < 1.0 - 1e-9:
        attempt = stepper.attempt(state, dt)
        for share in (0.3, 0.7):
            t = state.t + share * dt
            worst = max(worst, float((attempt.segment.at(t) - exact(t)).norm()))
        state = attempt.state
    return worst


@pytest.mark.parametrize(
    "method", [name for name, order in ORDERS.items() if order and order >= 3]
)  # fmt: skip
def test_between_steps_the_error_falls_at_least_with_the_third_power(method):
    assert math.log2(middle_error(method, 0.1) / middle_error(method, 0.05)) > 2.85


@pytest.mark.parametrize("method", ["adams", "tsit5", "etd4", "dopri5"])
def test_any_time_of_a_path_is_as_accurate_as_its_steps(method):
    u0 = torch.full((1, 3, 1), 0.05, dtype=torch.float64)
    path = integrate(
        logistic, u0, (0.0, 6.0), method=method, tolerance=Tolerance(rtol=1e-6)
    )  # fmt: skip
    for t in torch.linspace(0.05, 5.95, 37).tolist():
        assert float((path.at(t) - logistic_exact(u0, t)).abs().max()) < 3e-5


def test_times_asked_for_do_not_shorten_the_steps():
    u0 = torch.full((1, 3, 1), 0.05, dtype=torch.float64)
    few = integrate(logistic, u0, (0.0, 6.0), method="adams")
    many = integrate(logistic, u0, torch.linspace(0, 6, 301), method="adams")
    assert many.statistics.steps == few.statistics.steps
    assert many.states.shape[0] == 301


def test_within_a_stiff_step_the_flow_is_followed_where_a_cubic_would_not():
    from depthpde.solvers.term import diffusion_term

    u0 = torch.tensor([1.0, -1.0, 1.0, -1.0]).double()[None, :, None]
    term = diffusion_term(50.0)
    path = integrate(term, u0, (0.0, 1.0), method="adams")
    segment = path.segments[0]
    t = 0.5 * (segment.start + segment.end)
    torch.testing.assert_close(path.at(t), term.flow(u0, 0.0, t), rtol=0, atol=1e-12)
