import pytest
import torch

from depthpde.layers.stabilizer import Stabilizer
from depthpde.operators.stabilizer import layer_norm, rms_norm
from depthpde.seeds import generator
from depthpde.simulator.equation import TERMS, Equation, Projection


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(0, "equation"), dtype=torch.float64)


def double(u):
    return 2 * u


def whole() -> Equation:
    return Equation(
        diffusion=0.1,
        interaction=torch.tanh,
        reaction=double,
        fidelity=0.5,
        source=lambda u, t: t * torch.ones_like(u),
        stabilizer=Stabilizer(norm="none"),
    )


def test_the_terms_come_in_the_order_of_their_turns():
    names = [term.name for term in whole().terms(draw(1, 5, 4))]
    assert names == list(TERMS) == list(whole().active)


@pytest.mark.parametrize("name", TERMS)
def test_each_term_can_be_switched_off_alone(name):
    u0 = draw(1, 5, 4)
    left = whole().without(name)
    assert left.active == tuple(each for each in TERMS if each != name)
    rates = {term.name: term.rhs(u0, 1.0) for term in whole().terms(u0)}
    for term in left.terms(u0):
        assert torch.equal(term.rhs(u0, 1.0), rates[term.name])


def test_refuses_to_switch_off_what_is_no_term():
    with pytest.raises(ValueError, match=r"`names` must be one of .*did you mean 'diffusion'"):
        whole().without("difusion")


def test_refuses_to_step_an_equation_without_terms():
    with pytest.raises(ValueError, match="`equation` must have at least one term, got none"):
        Equation().terms(draw(1, 3, 2))


@pytest.mark.parametrize(
    ("stabilizer", "after"),
    [
        (Stabilizer(norm="none"), lambda u: u + double(u)),
        (Stabilizer(norm="pre"), lambda u: u + double(layer_norm(u))),
        (Stabilizer(norm="pre", kind="rms"), lambda u: u + double(rms_norm(u))),
        (Stabilizer(norm="post"), lambda u: layer_norm(u + double(u))),
        (Stabilizer(norm="none", residual=False), double),
        (Stabilizer(norm="pre", residual=False), lambda u: double(layer_norm(u))),
        (Stabilizer(norm="post", residual=False), lambda u: layer_norm(double(u))),
    ],
    ids=("none", "pre", "rms", "post", "neither", "pre alone", "post alone"),
)
def test_one_euler_step_of_dt_1_is_the_block_that_the_stabilizer_means(stabilizer, after):
    u = draw(2, 5, 4)
    (term,) = Equation(reaction=double, stabilizer=stabilizer).terms(u)
    torch.testing.assert_close(u + term.rhs(u, 0.0), after(u), rtol=0, atol=1e-14)


def test_a_projected_rate_never_leaves_the_sphere():
    projection = Projection()
    u = projection.project(draw(2, 5, 4))
    torch.testing.assert_close(u.norm(dim=-1), torch.full((2, 5), 2.0).double())
    torch.testing.assert_close(u.mean(dim=-1), torch.zeros(2, 5).double())
    (term,) = Equation(reaction=torch.exp, stabilizer=projection).terms(u)
    rate = term.rhs(u, 0.0)
    assert (rate * u).sum(dim=-1).abs().max() < 1e-13
    assert rate.mean(dim=-1).abs().max() < 1e-14
    assert rate.norm() > 0.1


def test_maps_given_by_layer_are_taken_by_layer():
    u = draw(1, 3, 2)
    equation = Equation(
        diffusion=(0.0, 0.3), reaction=[torch.tanh, torch.sin], stabilizer=Stabilizer(norm="none")
    )
    assert equation.layers == 2
    rates = {term.name: term.rhs(u, 0.0) for term in equation.terms(u, layer=1)}
    assert torch.equal(rates["reaction"], torch.sin(u))
    assert rates["diffusion"].abs().sum() > 0


def test_norms_given_by_layer_stand_before_their_terms():
    u = draw(1, 3, 2)
    equation = Equation(
        reaction=double, reaction_norm=[torch.sin, torch.cos], stabilizer=Stabilizer(norm="pre")
    )
    (term,) = equation.terms(u, layer=1)
    assert torch.equal(term.rhs(u, 0.0), 2 * torch.cos(u))


def test_refuses_terms_of_different_depths():
    with pytest.raises(ValueError, match=r"as many layers in every term, got .*reaction: 3"):
        Equation(interaction=[torch.sin] * 2, reaction=[torch.sin] * 3)


def test_refuses_heat_that_flows_uphill():
    with pytest.raises(ValueError, match=r"`diffusion` must not be negative, got -0.1: heat"):
        Equation(diffusion=-0.1)
    with pytest.raises(ValueError, match="`diffusion` must not be negative"):
        Equation(diffusion=(0.1, torch.tensor([0.1, -1.0])))


def test_refuses_deepnorm_without_a_depth():
    with pytest.raises(ValueError, match="`stabilizer` must not be DeepNorm where no term is"):
        Equation(reaction=double, stabilizer=Stabilizer(norm="post", deepnorm=True))


def test_refuses_a_causal_equation_on_a_ring():
    with pytest.raises(ValueError, match="`boundary` must be 'no_flux' where `causal` is True"):
        Equation(diffusion=0.1, causal=True, boundary="periodic")


def test_refuses_a_sphere_without_a_radius():
    with pytest.raises(ValueError, match="`radius` must lie in"):
        Projection(radius=0.0)
