import math
import sys
from functools import partial

import pytest
import torch
from scipy.integrate import solve_ivp

from depthpde.layers.interaction import Attention
from depthpde.layers.reaction import FeedForward
from depthpde.layers.stabilizer import Stabilizer
from depthpde.operators.diffusion.diffusion_2d import diffuse_2d
from depthpde.operators.interaction import attention_weights
from depthpde.operators.laplacian import eigenvalues, eigenvectors
from depthpde.seeds import generator
from depthpde.simulator.equation import Equation, Projection
from depthpde.simulator.integrator import Integrator
from depthpde.simulator.simulate import simulate
from depthpde.simulator.systems import SYSTEMS
from depthpde.solvers.clusters import count_clusters
from depthpde.solvers.events import merged, norm_above
from depthpde.solvers.integrate import BlowUpError
from depthpde.solvers.trajectory import SolverStatus

BARE = Stabilizer(norm="none")
METHODS = list(Integrator)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(0, "simulator"), dtype=torch.float64)


def observed_order(equation, u0, exact, method, steps, time=1.0) -> float:
    """Take the slope of log error over log dt between two numbers of steps."""
    errors = [
        (simulate(equation, u0, (0.0, time), method=method, substeps=n).final - exact).norm()
        for n in steps
    ]
    return float((errors[0] / errors[1]).log() / math.log(steps[1] / steps[0]))


def heat(u0: torch.Tensor, time: float) -> torch.Tensor:
    modes = eigenvectors(u0.shape[1])
    decay = torch.exp(eigenvalues(u0.shape[1]) * time)
    return torch.einsum("ik,k,jk,bjd->bid", modes, decay, modes, u0)


@pytest.mark.parametrize("method", METHODS)
def test_heat_spreads_as_the_cosine_transform_says(method):
    u0 = draw(2, 12, 3)
    equation, exact = Equation(diffusion=0.3), heat(u0, 0.3)
    if method is Integrator.STRANG:  # diffusion takes its exact flow
        path = simulate(equation, u0, (0.0, 1.0), method=method)
        torch.testing.assert_close(path.final, exact, rtol=0, atol=1e-13)
    else:
        order = observed_order(equation, u0, exact, method, (40, 80))
        assert order == pytest.approx(method.order, abs=0.15)


@pytest.mark.parametrize("method", METHODS)
def test_a_linear_reaction_grows_as_its_matrix_exponential(method):
    matrix = draw(3, 3)
    u0 = draw(2, 4, 3)
    exact = u0 @ torch.linalg.matrix_exp(matrix.mT)
    equation = Equation(reaction=lambda u: u @ matrix.mT, stabilizer=BARE)
    order = observed_order(equation, u0, exact, method, (40, 80))
    assert order == pytest.approx(method.order, abs=0.15)


@pytest.mark.parametrize("method", METHODS)
def test_a_gaussian_under_linear_attention_keeps_its_axes_and_shrinks_exactly(method):
    # A(u)_i = −Σ u_i with the second moment Σ: every eigenvalue obeys s' = −2 s².
    u0 = draw(1, 200, 3) * torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)
    s, axes = torch.linalg.eigh(u0[0].mT @ u0[0] / 200)
    shrink = (1 + 2 * s).rsqrt()
    exact = u0 @ axes @ torch.diag(shrink) @ axes.mT
    equation = Equation(interaction=lambda u: -(u @ (u.mT @ u)) / u.shape[1], stabilizer=BARE)
    steps = (320, 640) if method.order == 1 else (160, 320)
    order = observed_order(equation, u0, exact, method, steps)
    assert order == pytest.approx(method.order, abs=0.15)


def equiangular(n: int, rho: float) -> torch.Tensor:
    gram = torch.full((n, n), rho, dtype=torch.float64).fill_diagonal_(1.0)
    return torch.linalg.cholesky(gram)[None]


def cosine_at(n: int, beta: float, rho: float, time: float) -> float:
    def rate(t, r):
        e, top = math.exp(beta * r[0]), math.exp(beta)
        return [2 * e * (1 - r[0]) * ((n - 1) * r[0] + 1) / (top + (n - 1) * e)]

    found = solve_ivp(rate, (0, time), [rho], rtol=1e-12, atol=1e-13, method="DOP853")
    return float(found.y[0, -1])


@pytest.mark.parametrize("method", METHODS)
def test_equiangular_particles_on_the_sphere_close_at_the_exact_rate(method):
    n, beta, rho = 5, 2.0, 0.1

    def attend(u):
        return attention_weights(u, u, gain=beta) @ u

    equation = Equation(interaction=attend, stabilizer=Projection(kind="rms", radius=1.0))
    exact = cosine_at(n, beta, rho, 1.0)

    def error(steps: int) -> float:
        path = simulate(equation, equiangular(n, rho), (0.0, 1.0), method=method, substeps=steps)
        gram = path.final[0] @ path.final[0].mT
        off = gram[~torch.eye(n, dtype=torch.bool)]
        assert off.max() - off.min() < 1e-12, "they stay equiangular"
        torch.testing.assert_close(gram.diagonal(), torch.ones(n).double())
        return abs(float(off.mean()) - exact)

    steps = (4, 8) if method is Integrator.RK4 else (64, 128)
    order = math.log2(error(steps[0]) / error(steps[1]))
    assert order == pytest.approx(method.order, abs=0.15)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("method", METHODS)
def test_padding_at_the_centre_of_the_sphere_is_left_alone(kind, method):
    attention, reaction = block()
    equation = Equation(
        diffusion=0.1, interaction=attention, reaction=reaction, stabilizer=Projection(kind=kind)
    )
    mask = torch.arange(6) < torch.tensor([[6], [4]])
    u0 = torch.randn(2, 6, 8, generator=generator(0, "padded"), dtype=torch.float64)
    u0 = (u0 * mask[..., None]).requires_grad_(True)
    path = simulate(equation, u0, (0.0, 0.5, 1.0), method=method, valid_mask=mask)
    assert torch.equal(path.final[~mask], torch.zeros(2, 8).double())
    torch.testing.assert_close(path.final[mask].norm(dim=-1), torch.full((10,), 8**0.5).double())
    alone = simulate(equation, u0[1:, :4], (0.0, 0.5, 1.0), method=method)
    torch.testing.assert_close(path.final[1:, :4], alone.final)
    path.final.sum().backward()
    assert u0.grad.isfinite().all()


def block(seed: int = 0, dim: int = 8) -> tuple[Attention, FeedForward]:
    attention = Attention(dim, 2, dtype=torch.float64)
    reaction = FeedForward(dim, 16, dtype=torch.float64)
    for name, each in (*attention.named_parameters(), *reaction.named_parameters()):
        each.data.copy_(0.4 * torch.randn(each.shape, generator=generator(seed, name)))
        each.requires_grad_(False)
    return attention, reaction


@pytest.mark.parametrize("method", METHODS)
def test_a_whole_block_is_followed_to_the_declared_order(method):
    attention, reaction = block()
    equation = Equation(diffusion=0.1, interaction=attention, reaction=reaction, fidelity=0.2)
    u0 = draw(2, 6, 8)
    exact = simulate(equation, u0, (0.0, 1.0), method="rk4", substeps=256).final
    steps = (32, 64) if method is Integrator.RK4 else (64, 128)
    order = observed_order(equation, u0, exact, method, steps)
    assert order == pytest.approx(method.order, abs=0.15)


def test_interpolated_weights_let_a_step_across_layers_keep_its_order():
    from depthpde.simulator.depth import Interpolated

    blocks = [block(seed) for seed in range(3)]
    equation = Equation(
        interaction=Interpolated([each[0] for each in blocks]),
        reaction=Interpolated([each[1] for each in blocks]),
    )
    u0 = draw(1, 5, 8)
    exact = simulate(equation, u0, (0.0, 3.0), method="rk4", substeps=384).final
    for method in ("lie", "strang", "heun"):
        order = observed_order(equation, u0, exact, method, (96, 192), time=3.0)
        assert order == pytest.approx(Integrator(method).order, abs=0.15), method


def test_the_trajectory_is_labelled_as_it_was_asked_for():
    attention, reaction = block()
    equation = Equation(
        diffusion=0.1, interaction=attention, reaction=reaction,
        stabilizer=Stabilizer(residual=True, norm="pre"),
    )  # fmt: skip
    path = simulate(equation, draw(2, 6, 8), times=torch.linspace(0, 6, 61), method="strang")
    assert path.states.shape == (61, 2, 6, 8)
    assert path.method == "strang"
    assert path.terms == ("diffusion", "interaction", "reaction")
    assert torch.equal(path.at(6.0), path.final)


@pytest.mark.parametrize("method", METHODS)
def test_padding_is_a_wall_to_every_term(method):
    attention, reaction = block()
    equation = Equation(diffusion=0.2, interaction=attention, reaction=reaction)
    u0, mask = draw(2, 6, 8), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    other = torch.where(mask[..., None], u0, 9.0)
    runs = [
        simulate(equation, each, (0.0, 1.0, 2.0), method=method, substeps=4, valid_mask=mask)
        for each in (u0, other)
    ]
    torch.testing.assert_close(runs[0].states[:, mask], runs[1].states[:, mask])
    short = simulate(equation, u0[1:, :4], (0.0, 1.0, 2.0), method=method, substeps=4)
    torch.testing.assert_close(runs[0].final[1, :4], short.final[0])


@pytest.mark.parametrize("method", METHODS)
def test_a_causal_equation_never_looks_ahead(method):
    attention, reaction = block()
    attention.causal = True
    equation = Equation(diffusion=0.3, interaction=attention, reaction=reaction, causal=True)
    u0 = draw(1, 6, 8)
    other = u0.clone()
    other[:, 3:] += 1.0
    a, b = (simulate(equation, each, (0.0, 1.0), method=method, substeps=4) for each in (u0, other))
    assert torch.equal(a.final[:, :3], b.final[:, :3])
    assert not torch.allclose(a.final[:, 3:], b.final[:, 3:])


def test_a_layer_acts_in_its_own_time_only():
    speeds = [lambda u: torch.ones_like(u), lambda u: 10 * torch.ones_like(u)]
    equation = Equation(reaction=speeds, stabilizer=BARE)
    u0 = torch.zeros(1, 1, 1, dtype=torch.float64)
    for method in METHODS:  # RK4 and Heun look at the end of a step, which is the next layer's
        path = simulate(equation, u0, (0.0, 0.5, 1.5, 2.0), method=method)
        assert path.states.flatten().tolist() == pytest.approx([0.0, 0.5, 6.0, 11.0])


def test_refuses_times_beyond_the_last_layer():
    equation = Equation(reaction=[torch.sin, torch.cos])
    with pytest.raises(ValueError, match=r"`times` must lie in \[0, 2\], the depth of .* 2 layers"):
        simulate(equation, draw(1, 3, 2), (0.0, 3.0))


def test_an_explicit_step_beyond_the_bound_is_named_and_the_implicit_one_is_fine():
    equation = Equation(diffusion=0.7)
    u0 = draw(1, 16, 1)
    with pytest.raises(BlowUpError, match=r"term 'diffusion': r = α dt/dx² = 0.7 is beyond 1/2"):
        simulate(equation, u0, torch.arange(200.0), method="euler")
    path = simulate(equation, u0, torch.arange(200.0), method="backward_euler")
    assert path.final.abs().max() < u0.abs().max()


def test_growth_is_judged_from_the_start_not_from_the_last_time():
    equation = Equation(reaction=lambda u: u, stabilizer=BARE)
    with pytest.raises(BlowUpError, match="term 'reaction' pushes hardest"):
        simulate(equation, draw(1, 2, 2), torch.arange(100.0), method="euler")


def test_gradients_reach_the_start_and_the_weights():
    attention, reaction = block()
    attention.query.weight.requires_grad_(True)
    u0 = draw(1, 4, 8).requires_grad_()
    equation = Equation(diffusion=0.1, interaction=attention, reaction=reaction)
    simulate(equation, u0, (0.0, 1.0, 2.0), method="strang").final.square().sum().backward()
    assert (u0.grad != 0).all()
    assert (attention.query.weight.grad != 0).any()


def test_fidelity_draws_the_field_back_to_its_start():
    push = Equation(source=lambda u, t: torch.ones_like(u))
    held = Equation(source=lambda u, t: torch.ones_like(u), fidelity=4.0)
    u0 = draw(1, 3, 2)
    far = simulate(push, u0, (0.0, 5.0), substeps=50).final - u0
    near = simulate(held, u0, (0.0, 5.0), substeps=50).final - u0
    torch.testing.assert_close(far, torch.full_like(far, 5.0))
    torch.testing.assert_close(near, torch.full_like(near, 0.25), rtol=0.01, atol=0)


def test_refuses_an_unknown_method():
    with pytest.raises(ValueError, match=r"`method` must be one of auto, euler, lie.*'strang'"):
        simulate(Equation(diffusion=0.1), draw(1, 3, 2), (0.0, 1.0), method="strnag")


def attentive(**options) -> tuple[Equation, torch.Tensor]:
    attention, reaction = block()
    equation = Equation(**{"diffusion": 2.0, **options}, interaction=attention, reaction=reaction)
    return equation, draw(2, 12, 8)


CHOSEN = ["auto", "adams", "dopri5", "tsit5", "bosh3", "etd4", "etd4_stiff", "ark3", "ark4"]


@pytest.mark.parametrize("method", CHOSEN)
def test_a_method_that_chooses_its_steps_agrees_with_scipy(method):
    equation, u0 = attentive(diffusion=5.0)

    def rate(t, flat):
        u = torch.from_numpy(flat).reshape(u0.shape)
        return equation.rate(t, u).flatten().numpy()

    found = solve_ivp(rate, (0, 1.5), u0.flatten().numpy(), method="DOP853", rtol=1e-11, atol=1e-12)
    exact = torch.from_numpy(found.y[:, -1]).reshape(u0.shape)
    path = simulate(equation, u0, (0.0, 0.7, 1.5), method=method, rtol=1e-6)
    assert float((path.final - exact).norm() / exact.norm()) < 1e-5
    assert path.states.shape == (3, 2, 12, 8)


def test_our_equations_run_under_torchdiffeq_and_agree():
    odeint = pytest.importorskip("torchdiffeq").odeint
    equation, u0 = attentive(fidelity=0.3)
    clock = torch.tensor([0.0, 0.5, 1.5], dtype=torch.float64)
    theirs = odeint(partial(equation.rate, start=u0), u0, clock, rtol=1e-10, atol=1e-11)
    ours = simulate(equation, u0, clock, rtol=1e-8)
    torch.testing.assert_close(ours.states, theirs, rtol=0, atol=1e-6)
    lent = simulate(equation, u0, clock, method="torchdiffeq:dopri8", rtol=1e-10)
    torch.testing.assert_close(lent.states, theirs, rtol=0, atol=1e-7)
    assert lent.method == "torchdiffeq:dopri8"
    assert lent.statistics.evaluations["interaction"] > 10


def test_a_peers_method_is_named_by_its_own_package():
    pytest.importorskip("torchdiffeq")
    equation, u0 = attentive()
    with pytest.raises(ValueError, match=r"`method` must be one of dopri8.*'dopri8'"):
        simulate(equation, u0, (0.0, 1.0), method="torchdiffeq:dopri6")
    with pytest.raises(ValueError, match=r"`events` must be left out.*'auto'"):
        simulate(
            equation, u0, (0.0, 1.0), method="torchdiffeq:dopri5", events=[norm_above(1e9)]
        )  # fmt: skip


def test_without_the_extra_a_peer_is_refused_and_the_extra_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    equation, u0 = attentive()
    with pytest.raises(ValueError, match=r"depthpde\[peers\]"):
        simulate(equation, u0, (0.0, 1.0), method="torchdiffeq:dopri5")


def test_auto_is_accurate_by_itself_and_says_what_it_chose():
    equation, u0 = attentive(diffusion=200.0)
    path = simulate(equation, u0, (0.0, 2.0))
    accurate = simulate(equation, u0, (0.0, 2.0), rtol=1e-10)
    assert float((path.final - accurate.final).norm() / accurate.final.norm()) < 1e-5
    assert path.method == "adams"
    assert "800" in path.message
    assert path.statistics.evaluations["interaction"] < 150


def test_strang_chooses_its_steps_where_a_tolerance_is_given():
    equation, u0 = attentive()
    exact = simulate(equation, u0, (0.0, 1.0), rtol=1e-10).final
    for rtol in (1e-3, 1e-4):
        path = simulate(equation, u0, (0.0, 1.0), method="strang", rtol=rtol)
        assert float((path.final - exact).norm() / exact.norm()) < 10 * rtol
    assert path.statistics.largest_error > 0


def test_chosen_steps_stop_where_a_layer_ends():
    speeds = [lambda u: torch.ones_like(u), lambda u: 10 * torch.ones_like(u)]
    equation = Equation(reaction=speeds, stabilizer=BARE)
    u0 = torch.zeros(1, 1, 1, dtype=torch.float64)
    path = simulate(equation, u0, (0.0, 0.5, 1.5, 2.0), method="tsit5")
    assert path.states.flatten().tolist() == pytest.approx([0.0, 0.5, 6.0, 11.0])
    assert float(path.at(1.25)) == pytest.approx(3.5)


def test_chosen_steps_respect_padding_and_the_past():
    attention, reaction = block()
    equation = Equation(diffusion=20.0, interaction=attention, reaction=reaction)
    u0, mask = draw(2, 6, 8), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    path = simulate(equation, u0, (0.0, 1.0), rtol=1e-8, valid_mask=mask)
    short = simulate(equation, u0[1:, :4], (0.0, 1.0), rtol=1e-8)
    torch.testing.assert_close(path.final[1, :4], short.final[0], rtol=0, atol=1e-6)
    attention.causal = True
    causal = Equation(diffusion=20.0, interaction=attention, reaction=reaction, causal=True)
    other = u0.clone()
    other[:, 3:] += 1.0
    a, b = (simulate(causal, each, (0.0, 1.0), rtol=1e-8).final for each in (u0, other))
    # The steps look at the whole field, so the past may differ, within the tolerance.
    torch.testing.assert_close(a[:, :3], b[:, :3], rtol=0, atol=1e-6)


def test_clustering_on_the_sphere_is_as_accurate_as_wanted():
    n, beta, rho = 5, 2.0, 0.1

    def attend(u):
        return attention_weights(u, u, gain=beta) @ u

    equation = Equation(interaction=attend, stabilizer=Projection(kind="rms", radius=1.0))
    exact = cosine_at(n, beta, rho, 3.0)
    for rtol in (1e-3, 1e-5, 1e-7, 1e-9):
        path = simulate(equation, equiangular(n, rho), (0.0, 3.0), rtol=rtol)
        gram = path.final[0] @ path.final[0].mT
        assert abs(float(gram[0, 1]) - exact) < 10 * rtol
        torch.testing.assert_close(gram.diagonal(), torch.ones(n).double())
        between = path.at(1.234)[0].norm(dim=-1)
        torch.testing.assert_close(between, torch.ones(n).double())


def test_an_image_is_a_field_of_two_dimensions():
    u0 = draw(1, 30, 2)
    for boundary in ("no_flux", "periodic"):
        equation = Equation(diffusion=3.0, grid=(5, 6), boundary=boundary)
        exact = diffuse_2d(u0, 3.0, (5, 6), scheme="exact", boundary=boundary)
        for method in ("auto", "strang", "ark4"):
            path = simulate(equation, u0, (0.0, 1.0), method=method)
            torch.testing.assert_close(path.final, exact, rtol=0, atol=1e-4)
    with pytest.raises(ValueError, match="`grid` must be left out where `causal`"):
        Equation(diffusion=1.0, grid=(5, 6), causal=True)
    with pytest.raises(
        ValueError, match="`valid_mask` must be left out for diffusion over an image"
    ):
        simulate(equation, u0, (0.0, 1.0), valid_mask=torch.ones(1, 30).bool())


def test_refuses_both_steps_and_a_tolerance():
    equation, u0 = attentive()
    with pytest.raises(ValueError, match=r"`substeps` must be left out .*got 4.*drop one"):
        simulate(equation, u0, (0.0, 1.0), substeps=4, rtol=1e-3)
    with pytest.raises(ValueError, match=r"`rtol` must be left out for 'rk4'.*'auto'"):
        simulate(equation, u0, (0.0, 1.0), method="rk4", rtol=1e-3)


def test_the_rate_needs_the_start_that_fidelity_draws_to():
    equation, u0 = attentive(fidelity=0.3)
    with pytest.raises(ValueError, match=r"`start` must be given.*0.3.*partial"):
        equation.rate(0.0, u0)
    by_layer = Equation(reaction=[torch.sin, torch.cos], stabilizer=BARE)
    assert torch.equal(by_layer.rate(1.5, u0), torch.cos(u0))
    assert torch.equal(by_layer.rate(torch.tensor(0.5), u0), torch.sin(u0))


def test_the_rate_compiles():
    equation, u0 = attentive()
    with torch.no_grad():
        compiled = torch.compile(lambda u: equation.rate(0.0, u), backend="eager")
        torch.testing.assert_close(compiled(u0), equation.rate(0.0, u0))


def test_half_precision_takes_fixed_steps_and_a_tolerance_that_its_rounding_allows():
    equation = Equation(diffusion=0.2, reaction=torch.tanh, stabilizer=BARE)
    u0 = draw(1, 12, 4)
    exact = simulate(equation, u0, (0.0, 1.0), rtol=1e-8).final
    for options in ({"method": "rk4", "substeps": 8}, {"method": "dopri5", "rtol": 0.07}):
        path = simulate(equation, u0.bfloat16(), (0.0, 1.0), **options)
        assert path.final.dtype == torch.bfloat16
        assert float((path.final.double() - exact).norm() / exact.norm()) < 0.03
    with pytest.raises(ValueError, match=r"`rtol` must be at least .* for torch.bfloat16"):
        simulate(equation, u0.bfloat16(), (0.0, 1.0))


def test_a_system_of_the_gallery_brings_its_start_and_times():
    system = SYSTEMS["clustering"]
    path = simulate(system, events=[merged(clusters=2, apart=0.05)])
    assert path.status is SolverStatus.EVENT
    assert path.states.shape[1:] == system.u0.shape
    assert float(count_clusters(path.final, apart=0.05)) == 2
    short = simulate(system, times=(0.0, 1.0))
    assert short.times.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="`u0` and `times` must be given for an equation"):
        simulate(system.equation)
