import pytest
import torch
from torch import nn

from depthpde.layers.diffusion import AdaptiveDiffusion, Diffusion
from depthpde.layers.interaction import Attention
from depthpde.layers.multiscale import MultiscaleDiffusion
from depthpde.measures import coupling
from depthpde.operators.commutator import frozen_commutator


def field(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def test_frozen_coupling_equals_the_matrix_commutator(generator):
    u = field(generator, 1, 6, 3)
    weights = torch.softmax(field(generator, 1, 2, 6, 6), dim=-1)
    wanted = [(frozen_commutator(weights[0, h], 0.25) @ u[0]).norm() / u.norm() for h in range(2)]
    found = coupling.frozen_coupling(weights, u)
    assert found.item() == pytest.approx(float(sum(wanted)) / 2)


def test_uniform_and_diagonal_attention_commute_with_diffusion(generator):
    u = field(generator, 2, 5, 3)
    uniform = torch.full((2, 1, 5, 5), 0.2, dtype=torch.float64)
    same = torch.eye(5, dtype=torch.float64).expand(2, 1, 5, 5)
    assert coupling.frozen_coupling(uniform, u).max() < 1e-14
    assert coupling.frozen_coupling(same, u).max() < 1e-14


def test_padding_changes_nothing(generator):
    u, weights = field(generator, 2, 7, 3), torch.softmax(field(generator, 2, 2, 5, 5), dim=-1)
    mask = torch.arange(7) < torch.tensor([[5], [5]])
    padded = torch.zeros(2, 2, 7, 7, dtype=torch.float64)
    padded[:, :, :5, :5] = weights
    found = coupling.frozen_coupling(padded, torch.where(mask[..., None], u, torch.nan), mask)
    torch.testing.assert_close(found, coupling.frozen_coupling(weights, u[:, :5]))


def test_nonlinear_coupling_of_a_pointwise_linear_map_is_zero_and_of_attention_is_not(generator):
    u = field(generator, 2, 6, 8)
    assert coupling.nonlinear_coupling(nn.Linear(8, 8).double(), u).max() < 1e-14
    attention = Attention(8, 2, dtype=torch.float64)
    with torch.no_grad():
        assert coupling.nonlinear_coupling(attention, u).min() > 1e-3


LAYERS = [
    Diffusion(3, initial_ratio=0.2),
    Diffusion(3, initial_ratio=0.2, steps=5, dilation=2),
    Diffusion(3, scheme="backward_euler", initial_ratio=0.9, steps=3),
    Diffusion(3, scheme="crank_nicolson", initial_ratio=0.4),
    Diffusion(3, scheme="exact", initial_ratio=0.9),
    Diffusion(3, causal=True, initial_ratio=0.2),
    AdaptiveDiffusion(3, steps=3),
    MultiscaleDiffusion(3),
]


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_no_diffusion_moves_more_than_its_bound(layer, generator):
    u = field(generator, 3, 40, 3)
    mask = torch.arange(40) < torch.tensor([[40], [31], [2]])
    with torch.no_grad():
        moved = coupling.insertion_change(u, layer.double()(u, mask), mask)
    bound = coupling.insertion_bound(layer, u, mask)
    assert (moved <= bound * (1 + 1e-9)).all()
    assert (moved > 0.05 * bound)[:2].all(), "a bound that says something"


@pytest.mark.parametrize("boundary", ["periodic", "fixed"])
def test_the_bound_counts_the_edges_beyond_the_ends(boundary):
    ramp = torch.arange(100.0, dtype=torch.float64)[None, :, None]
    layer = Diffusion(1, boundary=boundary, initial_ratio=0.2).double()
    with torch.no_grad():
        moved = coupling.insertion_change(ramp, layer(ramp))
    assert moved <= coupling.insertion_bound(layer, ramp)
    assert moved > 4.0, "the slope at the ends, not the ramp's own"


def test_the_bound_is_met_by_upwind(generator):
    layer = Diffusion(3, causal=True, initial_ratio=0.2, per="scalar").double()
    u = field(generator, 2, 9, 3)
    with torch.no_grad():
        moved = coupling.insertion_change(u, layer(u))
    torch.testing.assert_close(moved, coupling.insertion_bound(layer, u))


def test_no_bound_is_claimed_where_none_is_known(generator):
    u = field(generator, 1, 4, 3)
    unknown = (
        nn.Identity(),
        Diffusion(3, grid=(2, 2)),
        Diffusion(3, causal=True, steps=2),
        MultiscaleDiffusion(3, gated=True),
        MultiscaleDiffusion(3, causal=True),
    )
    assert all(coupling.insertion_bound(layer, u) is None for layer in unknown)
