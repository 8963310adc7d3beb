import math

import pytest
import torch
from torch import Tensor

from depthpde.operators.laplacian import laplacian, laplacian_matrix
from depthpde.seeds import generator
from depthpde.solvers.step import newton, step
from depthpde.solvers.tableau import BACKWARD_EULER, CRANK_NICOLSON, EULER, TABLEAUS, Tableau
from depthpde.solvers.term import Term

EVERY = pytest.mark.parametrize("tableau", list(TABLEAUS.values()), ids=list(TABLEAUS))


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0, "step"), dtype=torch.float64)


def march(term: Term, u: Tensor, end: float, steps: int, tableau: Tableau) -> Tensor:
    dt = end / steps
    for number in range(steps):
        u = step(term, u, number * dt, dt, tableau)
    return u


def observed_order(term: Term, u0: Tensor, exact: Tensor, tableau: Tableau, end: float) -> float:
    counts = torch.tensor([8.0, 16.0, 32.0], dtype=torch.float64)
    errors = torch.stack(
        [(march(term, u0, end, int(n), tableau) - exact).abs().max() for n in counts]
    )
    x, y = counts.log(), errors.log()
    return -float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


@EVERY
def test_observed_order_is_the_declared_one_for_logistic_growth(tableau: Tableau) -> None:
    u0 = torch.tensor([[[0.1], [0.3], [0.8]]], dtype=torch.float64)
    exact = u0 * math.e / (1 + u0 * (math.e - 1))
    term = Term(name="growth", rhs=lambda u, t: u * (1 - u))
    order = observed_order(term, u0, exact, tableau, 1.0)
    assert order == pytest.approx(tableau.order, abs=0.15)


@EVERY
def test_observed_order_is_the_declared_one_when_time_drives(tableau: Tableau) -> None:
    u0 = torch.zeros(1, 1, 1, dtype=torch.float64)
    end = 1.5
    exact = torch.full_like(u0, 0.5 * (math.sin(end) + math.cos(end) - math.exp(-end)))
    term = Term(name="driven", rhs=lambda u, t: math.cos(t) - u)
    order = observed_order(term, u0, exact, tableau, end)
    assert order == pytest.approx(tableau.order, abs=0.15)


def test_euler_on_diffusion_is_the_explicit_step() -> None:
    u = draw(2, 7, 3)
    term = Term(name="diffusion", rhs=lambda v, t: laplacian(v))
    torch.testing.assert_close(step(term, u, 0.0, 0.25, EULER), u + 0.25 * laplacian(u))


@pytest.mark.parametrize("supplied", [True, False], ids=["own solver", "newton"])
@pytest.mark.parametrize("tableau", [BACKWARD_EULER, CRANK_NICOLSON], ids=lambda each: each.name)
def test_implicit_step_on_diffusion_equals_the_dense_solve(
    tableau: Tableau, supplied: bool
) -> None:
    u, r = draw(2, 7, 3), 5.0
    L = laplacian_matrix(7)
    eye = torch.eye(7, dtype=torch.float64)

    def solve(v: Tensor, scale: float, t: float) -> Tensor:
        return torch.linalg.solve(eye - scale * L, v)

    term = Term(name="diffusion", rhs=lambda v, t: laplacian(v), solve=solve if supplied else None)
    if tableau is BACKWARD_EULER:
        expected = torch.linalg.solve(eye - r * L, u)
    else:
        expected = torch.linalg.solve(eye - r / 2 * L, (eye + r / 2 * L) @ u)
    torch.testing.assert_close(step(term, u, 0.0, r, tableau), expected)


def test_the_terms_own_solver_is_the_one_that_runs() -> None:
    seen = []

    def solve(v: Tensor, scale: float, t: float) -> Tensor:
        seen.append((scale, t))
        return v / (1 + scale)

    term = Term(name="decay", rhs=lambda u, t: -u, solve=solve)
    step(term, draw(1, 3, 1), 2.0, 0.5, CRANK_NICOLSON)
    assert seen == [(0.25, 2.5)]


@pytest.mark.parametrize("tableau", [BACKWARD_EULER, CRANK_NICOLSON], ids=lambda each: each.name)
def test_implicit_step_carries_exact_gradients(tableau: Tableau) -> None:
    u, rate = draw(1, 4, 1), torch.tensor(0.7, dtype=torch.float64)

    def advance(v: Tensor, k: Tensor) -> Tensor:
        term = Term(name="reaction", rhs=lambda w, t: k * (w - w**3) + laplacian(w))
        return step(term, v, 0.0, 0.4, tableau)

    assert torch.autograd.gradcheck(
        advance, (u.requires_grad_(), rate.requires_grad_()), fast_mode=False
    )


def test_newton_solves_its_equation() -> None:
    v = draw(1, 5, 2)
    y = newton(lambda u, t: u - u**3, v, 0.8, 0.0)
    torch.testing.assert_close(y - 0.8 * (y - y**3), v, rtol=0, atol=1e-12)


def test_refuses_a_dense_jacobian_that_is_too_large() -> None:
    u = torch.zeros(1, 5000, 1)
    with pytest.raises(ValueError, match=r"`solve` must be given .* 5000 unknowns"):
        step(Term(name="decay", rhs=lambda v, t: -v), u, 0.0, 1.0, BACKWARD_EULER)


def test_says_when_newton_does_not_converge() -> None:
    term = Term(name="no root", rhs=lambda v, t: v**2 + 1)
    with pytest.raises(ValueError, match=r"did not converge: residual .* use a smaller dt"):
        step(term, torch.zeros(1, 1, 1, dtype=torch.float64), 0.0, 10.0, BACKWARD_EULER)
