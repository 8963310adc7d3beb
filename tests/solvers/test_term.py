import math

import pytest
import torch

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.laplacian import laplacian_matrix
from depthpde.operators.stability import Scheme
from depthpde.seeds import generator
from depthpde.solvers.tableau import BACKWARD_EULER, EULER, RK4
from depthpde.solvers.term import Limit, Term, add_terms, diffusion_term, transport_term


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(0, "term"), dtype=torch.float64)


LIMIT = Limit(quantity="r = α dt/dx²", rate=2.0, stiffness=4.0)


def test_the_euler_limit_of_the_laplacian_is_one_half() -> None:
    assert LIMIT.bound(EULER) == 0.5
    assert LIMIT.breach(EULER, 0.25) is None
    assert LIMIT.breach(EULER, 0.35) == "r = α dt/dx² = 0.7 is beyond 1/2; use dt ≤ 0.25"


def test_rk4_reaches_further_and_implicit_methods_have_no_limit() -> None:
    assert LIMIT.bound(RK4) == pytest.approx(0.6963, abs=1e-4)
    assert LIMIT.breach(RK4, 0.25) is None
    assert LIMIT.breach(RK4, 0.36) == "r = α dt/dx² = 0.72 is beyond 0.696; use dt ≤ 0.348"
    assert LIMIT.bound(BACKWARD_EULER) == math.inf
    assert LIMIT.breach(BACKWARD_EULER, 1e9) is None


def test_terms_add_up() -> None:
    terms = (
        Term(name="decay", rhs=lambda u, t: -u),
        Term(name="drive", rhs=lambda u, t: torch.full_like(u, t)),
    )
    total = add_terms(terms)
    u = torch.ones(1, 2, 3, dtype=torch.float64)
    assert total.name == "decay + drive"
    assert torch.equal(total.rhs(u, 5.0), torch.full_like(u, 4.0))


def test_a_lone_term_keeps_its_solver() -> None:
    term = Term(name="decay", rhs=lambda u, t: -u, solve=lambda v, scale, t: v / (1 + scale))
    assert add_terms((term,)) is term


@pytest.mark.parametrize("boundary", list(Boundary))
def test_the_diffusion_term_knows_its_rate_its_solver_and_its_flow(boundary: Boundary) -> None:
    u = torch.randn(2, 7, 3, generator=generator(0, "term"), dtype=torch.float64)
    term = diffusion_term(0.6, dx=0.5, boundary=boundary)
    L = 0.6 / 0.25 * laplacian_matrix(7, boundary=boundary)
    eye = torch.eye(7, dtype=torch.float64)
    assert term.solve is not None
    assert term.flow is not None
    torch.testing.assert_close(term.rhs(u, 0.0), L @ u)
    torch.testing.assert_close(term.solve(u, 1.5, 0.0), torch.linalg.solve(eye - 1.5 * L, u))
    torch.testing.assert_close(term.flow(u, 0.0, 1.5), torch.linalg.matrix_exp(1.5 * L) @ u)


def test_the_diffusion_term_knows_its_limit() -> None:
    limit = diffusion_term(0.6, dx=0.5).limit
    assert limit is not None
    assert limit.breach(EULER, 0.5) == "r = α dt/dx² = 1.2 is beyond 1/2; use dt ≤ 0.208"


def test_diffusion_stops_at_padding() -> None:
    u, mask = draw(2, 6, 3), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    term, short = diffusion_term(0.3, valid_mask=mask), diffusion_term(0.3)
    assert term.solve is not None
    assert term.flow is not None
    assert short.solve is not None
    assert short.flow is not None
    for whole, part in (
        (term.rhs(u, 0.0), short.rhs(u[1:, :4], 0.0)),
        (term.solve(u, 0.5, 0.0), short.solve(u[1:, :4], 0.5, 0.0)),
        (term.flow(u, 0.0, 0.5), short.flow(u[1:, :4], 0.0, 0.5)),
    ):
        torch.testing.assert_close(whole[1:, :4], part)
    assert not term.rhs(u, 0.0)[1, 4:].any()


def test_diffusivity_may_differ_by_feature() -> None:
    u, alpha = draw(1, 6, 2), torch.tensor([0.1, 0.4], dtype=torch.float64)
    term = diffusion_term(alpha)
    for index in range(2):
        single = diffusion_term(float(alpha[index]))
        got = term.rhs(u, 0.0)[..., index : index + 1]
        torch.testing.assert_close(got, single.rhs(u[..., index : index + 1], 0.0))
    assert term.limit is not None
    assert term.limit.rate == pytest.approx(0.4)


def test_transport_takes_from_the_site_before_only() -> None:
    u = draw(1, 5, 2)
    term = transport_term(0.4)
    stepped = u + term.rhs(u, 0.0)
    wanted = diffuse(u, 0.4, scheme=Scheme.UPWIND)
    torch.testing.assert_close(stepped, wanted)


@pytest.mark.parametrize("masked", [False, True])
def test_transport_solves_its_own_implicit_step(masked: bool) -> None:
    u = draw(2, 5, 3)
    mask = torch.tensor([[True] * 5, [True, True, False, True, True]]) if masked else None
    rate = torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64)
    term = transport_term(rate, valid_mask=mask)
    assert term.solve is not None
    y = term.solve(u, 0.7, 0.0)
    torch.testing.assert_close(y - 0.7 * term.rhs(y, 0.0), u)


def test_transport_beyond_its_bound_leaves_the_range_and_says_so() -> None:
    limit = transport_term(1.2).limit
    assert limit is not None
    assert limit.breach(EULER, 1.0) == "r = c dt = 1.2 is beyond 1; use dt ≤ 0.833"
    assert limit.breach(EULER, 0.8) is None


@pytest.mark.parametrize("boundary", [Boundary.FIXED, Boundary.PERIODIC])
def test_walls_of_padding_need_no_flux_ends(boundary: Boundary) -> None:
    term = diffusion_term(1.0, boundary=boundary, valid_mask=torch.ones(2, 6, dtype=torch.bool))
    with pytest.raises(ValueError, match="`boundary` must be 'no_flux' where edges are cut"):
        term.rhs(draw(2, 6, 3), 0.0)
