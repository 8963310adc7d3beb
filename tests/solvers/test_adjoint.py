from functools import partial

import pytest
import torch

from depthpde.layers.interaction import Attention
from depthpde.layers.reaction import FeedForward
from depthpde.simulator.equation import Equation, Projection
from depthpde.simulator.simulate import simulate
from depthpde.solvers.adjoint import leaves_of
from depthpde.solvers.events import norm_above
from depthpde.solvers.term import Term
from solvers.steppers.problems import draw
from solvers.test_checkpointing import saved_bytes


def gradients(gradient, *, causal=False, stabilizer=None, **options):
    torch.manual_seed(0)
    attention = Attention(8, 2, causal=causal, dtype=torch.float64)
    reaction = FeedForward(8, 16, dtype=torch.float64)
    alpha = torch.full((8,), 3.0, dtype=torch.float64, requires_grad=True)
    u0 = draw(2, 10, 8).requires_grad_()
    extra = {} if stabilizer is None else {"stabilizer": stabilizer}
    equation = Equation(
        diffusion=alpha, interaction=attention, reaction=reaction, causal=causal, **extra
    )
    path = simulate(equation, u0, (0.0, 0.4, 1.0), gradient=gradient, **options)
    loss = path.final.square().mean() + path.states[1].sin().sum()
    wanted = [u0, alpha, *attention.parameters(), *reaction.parameters()]
    return torch.autograd.grad(loss, wanted)


def distance(found, wanted):
    return max(
        float((a - b).norm() / (b.norm() + 1e-3)) for a, b in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize(
    "method",
    ["auto", *(pytest.param(n, marks=pytest.mark.drill) for n in ("tsit5", "etd4", "ark4"))],
)
def test_the_three_gradients_agree(method):
    wanted = gradients("steps", method=method, rtol=1e-9)
    assert distance(gradients("checkpoint", method=method, rtol=1e-9), wanted) < 1e-6
    assert distance(gradients("adjoint", method=method, rtol=1e-9), wanted) < 1e-6


def test_the_error_of_the_adjoint_is_that_of_the_tolerance():
    exact = gradients("steps", rtol=1e-10)
    for rtol in (1e-4, 1e-6):
        assert distance(gradients("adjoint", rtol=rtol), exact) < 30 * rtol


def test_the_adjoint_keeps_as_much_for_many_steps_as_for_few():
    equation, u0 = Equation(diffusion=0.1, interaction=Attention(8, 2)), draw(1, 32, 8).float()

    def kept(rtol, gradient):
        run = partial(simulate, equation, u0, (0.0, 2.0), method="bosh3", gradient=gradient)
        return saved_bytes(lambda: run(rtol=rtol))

    assert kept(1e-5, "adjoint") == kept(1e-2, "adjoint")
    assert kept(1e-5, "steps") > 20 * kept(1e-5, "adjoint")


def test_upwind_diffusion_is_transposed():
    wanted = gradients("steps", rtol=1e-9, causal=True)
    assert distance(gradients("adjoint", rtol=1e-9, causal=True), wanted) < 1e-6


def test_a_projection_is_differentiated_too():
    sphere = Projection(kind="rms")
    wanted = gradients("steps", rtol=1e-9, stabilizer=sphere)
    assert distance(gradients("checkpoint", rtol=1e-9, stabilizer=sphere), wanted) < 1e-6


@pytest.mark.parametrize("method", ["heun", "strang", "rk4"])
def test_checkpoints_give_the_gradient_of_fixed_steps_exactly(method):
    wanted = gradients("steps", method=method, substeps=20)
    found = gradients("checkpoint", method=method, substeps=20)
    assert distance(found, wanted) < 1e-13


def test_every_leaf_is_found_even_in_a_closure():
    hidden = torch.tensor(2.0, requires_grad=True)
    linear = torch.nn.Linear(3, 3)
    term = Term(name="reaction", rhs=lambda u, t: linear(u) * hidden)
    u = torch.randn(1, 2, 3, requires_grad=True)
    found = {id(leaf) for leaf in leaves_of((term,), u, 0.0)}
    assert found == {id(hidden), id(linear.weight), id(linear.bias)}


def test_refuses_what_has_no_adjoint():
    with pytest.raises(ValueError, match=r"must choose its own steps.*'rk4'.*checkpoint"):
        gradients("adjoint", method="rk4", substeps=4)
    with pytest.raises(ValueError, match=r"`events` must be left out.*'checkpoint'.*'steps'"):
        gradients("checkpoint", events=[norm_above(1e9)])
    with pytest.raises(ValueError, match=r"`gradient` must be one of steps, checkpoint, adjoint"):
        gradients("adjoin")
