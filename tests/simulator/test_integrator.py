import pytest
import torch

from depthpde.simulator.integrator import Integrator, plan
from depthpde.solvers.splitting import Splitting
from depthpde.solvers.term import Term, diffusion_term


def term(name: str) -> Term:
    return Term(name=name, rhs=lambda u, t: -u)


TERMS = (diffusion_term(0.1), term("interaction"), term("reaction"), term("source"))


def names(integrator: str) -> list[str]:
    return [each.name for each in plan(Integrator(integrator), TERMS).terms]


def test_lie_takes_attention_before_the_feed_forward_as_a_block_does():
    assert names("lie") == ["diffusion", "interaction", "reaction", "source"]
    assert all(each.flow is None for each in plan(Integrator.LIE, TERMS).terms), "Euler turns"


def test_strang_steps_the_dearest_term_once():
    arranged = plan(Integrator.STRANG, TERMS)
    assert names("strang")[-1] == "interaction"
    assert arranged.splitting is Splitting.STRANG
    assert arranged.terms[0].flow is not None, "diffusion keeps its exact flow"


def test_backward_euler_adds_all_else_up_and_solves_for_diffusion_last():
    assert names("backward_euler") == ["interaction + reaction + source", "diffusion"]
    alone = plan(Integrator.BACKWARD_EULER, TERMS[:1]).terms
    assert [each.name for each in alone] == ["diffusion"]


@pytest.mark.parametrize("integrator", list(Integrator))
def test_a_projection_follows_every_step(integrator):
    seen = []

    def project(u: torch.Tensor) -> torch.Tensor:
        seen.append(u)
        return u

    u = torch.ones(1, 4, 2, dtype=torch.float64)
    plan(integrator, TERMS, project).step(u, 0.0, 0.1)
    assert seen


def test_orders_are_declared():
    orders = {each.value: each.order for each in Integrator}
    assert orders == {
        "euler": 1, "lie": 1, "strang": 2, "heun": 2, "rk4": 4, "backward_euler": 1
    }  # fmt: skip
