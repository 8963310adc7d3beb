import math

import torch

from depthpde.solvers.checkpointing import Noting, replay
from depthpde.solvers.steppers.methods import build_stepper
from depthpde.solvers.tolerance import Tolerance
from solvers.steppers.problems import draw, manufactured


def test_the_same_steps_are_taken_again_to_the_bit():
    terms, exact = manufactured(alpha=2.0)
    for method in ("tsit5", "adams", "etd4", "ark4"):
        u0 = exact(0.0)
        stepper = build_stepper(method, terms, u0, Tolerance(rtol=1e-6))
        noting = Noting(stepper)
        state = noting.start(u0, 0.0)
        dt = noting.first_step(state)
        while state.t < 1.0:
            attempt = noting.attempt(state, dt)
            state, dt = attempt.state, dt * attempt.factor
        found = replay(stepper, u0.requires_grad_(), 0.0, noting.taken)
        assert torch.equal(found[-1].detach(), noting.field(state)), method
        assert len(found) == math.ceil(len(noting.taken) / math.isqrt(len(noting.taken)))
        (slope,) = torch.autograd.grad(found[-1].sum(), u0)
        assert slope.isfinite().all()


def saved_bytes(run):
    """Count the bytes that autograd keeps for the backward pass."""
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    return sum(kept.values())


def test_what_is_kept_grows_with_the_square_root_of_the_steps():
    from depthpde.layers.interaction import Attention
    from depthpde.simulator.equation import Equation
    from depthpde.simulator.simulate import simulate

    torch.manual_seed(0)
    equation = Equation(diffusion=0.1, interaction=Attention(8, 2, dtype=torch.float64))
    u0 = draw(1, 32, 8)

    def kept(steps, gradient):
        return saved_bytes(
            lambda: simulate(
                equation, u0, (0.0, 2.0), method="heun", substeps=steps, gradient=gradient
            )
        )

    one = kept(1, "steps")
    assert kept(256, "steps") > 100 * one
    # Sixteen kept fields, and while a piece is differentiated its sixteen steps.
    assert kept(256, "checkpoint") + 16 * one <= 24 * one
