import math
from dataclasses import replace

import pytest
import torch

from depthpde.solvers.integrate import integrate
from depthpde.solvers.steppers.adams import GROWTH, HIGHEST, AdamsStepper
from depthpde.solvers.steppers.methods import generator_of
from depthpde.solvers.steppers.stepper import StepState, split_linear
from depthpde.solvers.term import Term
from depthpde.solvers.tolerance import Tolerance
from solvers.steppers.problems import draw, logistic, logistic_exact, manufactured


def fixed_order(order, terms, exact, steps):
    """March with fixed steps and order from an exact past, and return the error at t = 1."""
    linear, rest = split_linear(terms)
    dt = 1.0 / steps
    stepper = AdamsStepper(generator_of(linear, exact(0.0)), rest, None, fixed=order)
    begun = stepper.start(exact(0.0), 0.0)
    times = [-j * dt for j in range(order)]
    row = [stepper.start(exact(t), t).tensors[1] for t in times]
    past = [row[0]]
    for depth in range(1, order):  # divided differences of the past
        row = [(row[i] - row[i + 1]) / (times[i] - times[i + depth]) for i in range(order - depth)]
        past.append(row[0])
    memory = replace(begun.memory, times=tuple(times), order=order)
    state = StepState(t=0.0, tensors=(begun.tensors[0], *past), memory=memory)
    for _ in range(steps):
        state = stepper.attempt(state, dt).state
    return float((stepper.field(state) - exact(1.0)).norm())


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_a_fixed_order_is_observed(order):
    terms, exact = manufactured(alpha=2.0)
    coarse, fine = (fixed_order(order, terms, exact, n) for n in (80, 160))
    # The corrector takes one value more than the predictor.
    assert math.log2(coarse / fine) == pytest.approx(order + 1, abs=0.15)


def test_a_smooth_solution_costs_one_evaluation_a_step():
    count = []

    def rest(u, t):
        count.append(t)
        return logistic(u, t)

    u0 = torch.full((1, 3, 1), 0.1, dtype=torch.float64)
    path = integrate(
        Term(name="reaction", rhs=rest), u0, (0.0, 4.0), method="adams",
        tolerance=Tolerance(rtol=1e-8),
    )  # fmt: skip
    assert len(count) == 1 + path.statistics.steps + path.statistics.rejected
    error = float((path.final - logistic_exact(u0, 4.0)).abs().max())
    assert error < 1e-7


def test_the_order_rises_with_the_accuracy_and_never_beyond_its_highest():
    terms, exact = manufactured(alpha=1.0)
    linear, rest = split_linear(terms)
    orders = {}
    for rtol in (1e-3, 1e-10):
        stepper = AdamsStepper(generator_of(linear, exact(0.0)), rest, Tolerance(rtol=rtol))
        state = stepper.start(exact(0.0), 0.0)
        dt, seen = stepper.first_step(state), []
        while state.t < 3.0:
            attempt = stepper.attempt(state, dt)
            state, dt = attempt.state, dt * attempt.factor
            assert attempt.factor <= GROWTH
            seen.append(state.memory.order)
        orders[rtol] = max(seen)
    assert orders[1e-3] < orders[1e-10] <= HIGHEST[torch.float64]


def test_a_rejected_step_is_tried_again_from_the_same_place_and_shorter():
    linear, rest = split_linear((Term(name="fast", rhs=lambda u, t: torch.cos(50 * u)),))
    stepper = AdamsStepper(generator_of(linear, draw(1, 2, 1)), rest, Tolerance(rtol=1e-8))
    state = stepper.start(draw(1, 2, 1), 0.0)
    attempt = stepper.attempt(state, 1.0)
    assert not attempt.accepted
    assert attempt.state.t == 0.0
    assert attempt.factor < 1
    again = stepper.attempt(attempt.state, 1.0)
    assert again.state.memory.failures == 2


def test_single_precision_is_followed_to_its_own_accuracy():
    u0 = torch.full((1, 3, 1), 0.1)
    path = integrate(logistic, u0, (0.0, 4.0), method="adams", tolerance=Tolerance(rtol=1e-5))
    assert path.final.dtype == torch.float32
    assert float((path.final - logistic_exact(u0, 4.0)).abs().max()) < 1e-4
