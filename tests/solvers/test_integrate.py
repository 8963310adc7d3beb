import dataclasses
import math

import pytest
import torch
from torch import Tensor

from depthpde.operators.laplacian import eigenvalues, eigenvectors
from depthpde.operators.reaction import fisher_kpp
from depthpde.seeds import generator
from depthpde.solvers.integrate import BlowUpError, integrate
from depthpde.solvers.term import Term, diffusion_term


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0, "integrate"), dtype=torch.float64)


def reaction() -> Term:
    return Term(name="reaction", rhs=lambda u, t: fisher_kpp(u))


def test_an_eigenmode_of_the_heat_equation_decays_exactly() -> None:
    mode = eigenvectors(16)[None, :, 3, None]
    times = torch.linspace(0, 4, 9)
    path = integrate(diffusion_term(1.0), mode, times, method="rk4", substeps=40)
    decay = torch.exp(eigenvalues(16)[3] * path.times)
    torch.testing.assert_close(path.states, decay[:, None, None, None] * mode, rtol=0, atol=1e-9)


def test_trajectory_is_labelled_and_starts_at_the_start() -> None:
    u0 = draw(2, 5, 3)
    path = integrate([diffusion_term(0.1), reaction()], u0, [0.0, 0.5, 1.5], method="heun")
    assert path.states.shape == (3, 2, 5, 3)
    assert torch.equal(path.at(0.0), u0)
    assert torch.equal(path.at(1.5), path.final)
    assert path.terms == ("diffusion", "reaction")
    assert path.method == "heun"
    output = "Trajectory(diffusion + reaction by heun, 3 times 0 … 1.5, field [2, 5, 3])"
    assert repr(path) == output


def test_a_plain_function_is_enough() -> None:
    u0 = torch.ones(1, 1, 1, dtype=torch.float64)
    path = integrate(lambda u, t: -u, u0, [0.0, 1.0], substeps=50)
    assert path.final.item() == pytest.approx(math.exp(-1), abs=1e-8)


@pytest.mark.parametrize("splitting", ["lie", "strang"])
def test_splitting_converges_to_the_unsplit_solution(splitting: str) -> None:
    u0 = 0.5 + 0.1 * draw(1, 9, 2)
    terms = [diffusion_term(1.0), reaction()]
    whole = integrate(terms, u0, [0.0, 1.0], substeps=400).final
    coarse = integrate(terms, u0, [0.0, 1.0], splitting=splitting, substeps=20)
    fine = integrate(terms, u0, [0.0, 1.0], splitting=splitting, substeps=80)
    assert coarse.method == f"{splitting}/rk4"
    ratio = (coarse.final - whole).norm() / (fine.final - whole).norm()
    assert ratio > (3.5 if splitting == "lie" else 14)


def test_gradients_flow_through_the_whole_run() -> None:
    u0 = draw(1, 5, 2).requires_grad_()
    integrate(diffusion_term(0.1), u0, [0.0, 1.0, 2.0]).final.square().sum().backward()
    assert u0.grad is not None
    assert (u0.grad != 0).all()


def test_blow_up_names_the_time_the_term_and_the_broken_bound() -> None:
    with pytest.raises(
        BlowUpError,
        match=r"blew up at t = \d+.*term 'diffusion': r = α dt/dx² = 0.7 is beyond 1/2; "
        r"use dt ≤ 0.714",
    ) as caught:
        integrate(
            [reaction_free(), diffusion_term(0.7)],
            draw(1, 16, 1),
            torch.arange(200.0),
            method="euler",
        )
    assert caught.value.term == "diffusion"
    assert 1 < caught.value.time < 199


def reaction_free() -> Term:
    return Term(name="nothing", rhs=lambda u, t: torch.zeros_like(u))


def test_blow_up_under_strang_judges_the_half_step_that_was_taken() -> None:
    terms = [dataclasses.replace(diffusion_term(1.5), flow=None), reaction_free()]
    with pytest.raises(BlowUpError, match=r"r = α dt/dx² = 0.75 is beyond 1/2; use dt ≤ 0.667"):
        integrate(terms, draw(1, 16, 1), torch.arange(200.0), method="euler", splitting="strang")


def test_the_same_splitting_is_fine_where_diffusion_takes_its_exact_flow() -> None:
    terms = [diffusion_term(1.5), reaction_free()]
    u0 = draw(1, 16, 1)
    path = integrate(terms, u0, torch.arange(50.0), method="euler", splitting="strang")
    assert path.states.abs().max() <= u0.abs().max() * (1 + 1e-12)


def test_the_same_step_is_fine_under_an_implicit_method() -> None:
    path = integrate(diffusion_term(0.7), draw(1, 16, 1), [0.0, 20.0], method="backward_euler")
    assert path.final.abs().max() < 3


def test_blow_up_without_a_declared_bound_names_the_term_that_pushes_hardest() -> None:
    u0 = torch.full((1, 4, 1), -1.0, dtype=torch.float64)
    with pytest.raises(BlowUpError, match=r"term 'reaction' pushes hardest.*use a smaller dt"):
        integrate([diffusion_term(0.1), reaction()], u0, [0.0, 10.0], method="rk4", substeps=100)


def test_not_a_number_counts_as_blow_up() -> None:
    with pytest.raises(BlowUpError, match="blew up at t = 1"):
        integrate(lambda u, t: u * math.nan, draw(1, 2, 1), [0.0, 1.0])


@pytest.mark.parametrize("times", [[0.0], [0.0, 0.0], [1.0, 0.0], [0.0, math.nan]])
def test_refuses_times_that_do_not_increase(times: list[float]) -> None:
    with pytest.raises(ValueError, match="`times` must be at least two increasing times"):
        integrate(diffusion_term(1.0), draw(1, 3, 1), times)


def test_refuses_no_terms() -> None:
    with pytest.raises(ValueError, match="`dynamics` must have at least one term"):
        integrate([], draw(1, 3, 1), [0.0, 1.0])


def test_refuses_no_substeps_and_unknown_splittings() -> None:
    with pytest.raises(ValueError, match="`substeps` must be at least 1"):
        integrate(diffusion_term(1.0), draw(1, 3, 1), [0.0, 1.0], substeps=0)
    with pytest.raises(ValueError, match=r"`splitting` must be one of lie, strang.*'strang'"):
        integrate(diffusion_term(1.0), draw(1, 3, 1), [0.0, 1.0], splitting="strange")


def test_refuses_a_time_that_was_not_recorded() -> None:
    path = integrate(diffusion_term(0.1), draw(1, 3, 1), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"`time` must be one of the 2 recorded.*nearest is 1"):
        path.at(0.7)


def turn(u: Tensor, t: float) -> Tensor:
    return torch.stack((-u[..., 1], u[..., 0]), dim=-1)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("rk4", 4)])
def test_a_projection_keeps_the_field_on_the_circle_and_the_methods_order(
    method: str, order: int
) -> None:
    def project(u: Tensor) -> Tensor:
        return u / u.norm(dim=-1, keepdim=True)

    # Turning at a speed that depends on the place, so that no method is exact by chance.
    def rhs(u: Tensor, t: float) -> Tensor:
        return (2 + u[..., :1]) * turn(u, t)

    u0 = torch.tensor([[[1.0, 0.0]]], dtype=torch.float64)

    def final(substeps: int) -> Tensor:
        path = integrate(rhs, u0, [0.0, 1.0], method=method, substeps=substeps, project=project)
        torch.testing.assert_close(path.final.norm(), torch.tensor(1.0).double())
        return path.final

    exact = final(2048) if order > 1 else integrate(rhs, u0, [0.0, 1.0], substeps=200).final
    coarse, fine = ((final(n) - exact).norm() for n in (32, 64))
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.15)


def test_a_projection_acts_after_every_turn_of_a_splitting() -> None:
    seen = []

    def project(u: Tensor) -> Tensor:
        seen.append(u)
        return u

    terms = [reaction_free(), reaction_free()]
    integrate(terms, draw(1, 2, 2), [0.0, 1.0], splitting="strang", project=project)
    assert len(seen) == 3


def test_a_given_ceiling_decides_what_has_blown_up() -> None:
    u0 = torch.ones(1, 1, 1, dtype=torch.float64)
    grow = Term(name="growth", rhs=lambda u, t: u)
    assert integrate(grow, u0, [0.0, 3.0], substeps=10).final.item() > 10
    with pytest.raises(BlowUpError, match="blew up"):
        integrate(grow, u0, [0.0, 3.0], substeps=10, ceiling=10.0)
