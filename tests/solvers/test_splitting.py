import pytest
import torch
from torch import Tensor

from depthpde.seeds import generator
from depthpde.solvers.splitting import Splitting, schedule, split_step
from depthpde.solvers.tableau import RK4
from depthpde.solvers.term import Term


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0, "splitting"), dtype=torch.float64)


def linear_term(name: str, matrix: Tensor, *, exact: bool) -> Term:
    def flow(u: Tensor, t: float, dt: float) -> Tensor:
        return torch.linalg.matrix_exp(dt * matrix) @ u

    return Term(name=name, rhs=lambda u, t: matrix @ u, flow=flow if exact else None)


def march(terms: list[Term], u: Tensor, steps: int, splitting: Splitting) -> Tensor:
    for number in range(steps):
        u = split_step(terms, u, number / steps, 1 / steps, tableau=RK4, splitting=splitting)
    return u


def observed_order(terms: list[Term], u: Tensor, exact: Tensor, splitting: Splitting) -> float:
    counts = torch.tensor([16.0, 32.0, 64.0], dtype=torch.float64)
    errors = torch.stack([(march(terms, u, int(n), splitting) - exact).norm() for n in counts])
    x, y = counts.log(), errors.log()
    return -float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


@pytest.mark.parametrize("splitting", list(Splitting))
@pytest.mark.parametrize("exact", [True, False], ids=["exact flows", "rk4 turns"])
@pytest.mark.parametrize("num_terms", [2, 3])
def test_observed_order_is_the_declared_one(
    splitting: Splitting, exact: bool, num_terms: int
) -> None:
    matrices = list(0.5 * draw(num_terms, 4, 4))
    terms = [linear_term(str(i), matrix, exact=exact) for i, matrix in enumerate(matrices)]
    u = draw(1, 4, 2)
    truth = torch.linalg.matrix_exp(torch.stack(matrices).sum(0)) @ u
    order = observed_order(terms, u, truth, splitting)
    assert order == pytest.approx(splitting.order, abs=0.15)


@pytest.mark.parametrize("splitting", list(Splitting))
def test_terms_that_commute_split_exactly(splitting: Splitting) -> None:
    matrix = 0.5 * draw(4, 4)
    terms = [linear_term("a", matrix, exact=True), linear_term("b", matrix @ matrix, exact=True)]
    u = draw(1, 4, 2)
    truth = torch.linalg.matrix_exp(matrix + matrix @ matrix) @ u
    torch.testing.assert_close(march(terms, u, 1, splitting), truth)


def test_lie_takes_each_term_once_and_strang_reads_the_same_backwards() -> None:
    assert schedule(Splitting.LIE, 3) == ((0, 1.0), (1, 1.0), (2, 1.0))
    turns = schedule(Splitting.STRANG, 3)
    assert turns == ((0, 0.5), (1, 0.5), (2, 1.0), (1, 0.5), (0, 0.5))


@pytest.mark.parametrize("splitting", list(Splitting))
@pytest.mark.parametrize("num_terms", [1, 2, 5])
def test_every_term_gets_the_whole_step(splitting: Splitting, num_terms: int) -> None:
    given = [0.0] * num_terms
    for index, fraction in schedule(splitting, num_terms):
        given[index] += fraction
    assert given == [1.0] * num_terms


def test_a_turn_starts_where_its_term_left_off() -> None:
    starts: list[tuple[str, float, float]] = []

    def clock(name: str) -> Term:
        def flow(u: Tensor, t: float, dt: float) -> Tensor:
            starts.append((name, t, dt))
            return u

        return Term(name=name, rhs=lambda u, t: u, flow=flow)

    split_step(
        [clock("a"), clock("b")], draw(1, 2, 1), 10.0, 2.0, tableau=RK4, splitting=Splitting.STRANG
    )
    assert starts == [("a", 10.0, 1.0), ("b", 10.0, 2.0), ("a", 11.0, 1.0)]
