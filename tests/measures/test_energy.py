import math

import pytest
import torch
from torch import nn

from depthpde.layers.diffusion import AdaptiveDiffusion, Diffusion
from depthpde.layers.multiscale import MultiscaleDiffusion
from depthpde.measures import energy
from depthpde.operators.diffusion.dispatch import diffuse

MEASURES = (energy.dirichlet, energy.smoothness_quotient, energy.field_size)


def field(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def test_quotient_is_one_for_unrelated_tokens_and_blind_to_gain_and_shift(generator):
    u = field(generator, 4, 500, 8)
    q = energy.smoothness_quotient(u)
    assert (q - 1).abs().max() < 0.1
    torch.testing.assert_close(energy.smoothness_quotient(3 * u + 7), q)


def test_quotient_falls_under_diffusion_and_not_when_tokens_collapse(generator):
    u = field(generator, 4, 64, 8)
    before = energy.smoothness_quotient(u)
    collapsed = u.mean(dim=1, keepdim=True) + 1e-3 * u
    assert energy.smoothness_quotient(diffuse(u, 0.25, steps=16)).max() < 0.3 * before.min()
    torch.testing.assert_close(energy.smoothness_quotient(collapsed), before, rtol=0.1, atol=0)


def test_quotient_of_a_constant_sequence_is_not_defined():
    assert energy.smoothness_quotient(torch.full((1, 9, 3), 0.1)).isnan().all()


def test_size_is_the_root_mean_square(generator):
    u = field(generator, 2, 5, 3)
    torch.testing.assert_close(energy.field_size(u), u.square().mean(dim=(1, 2)).sqrt())


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_at_a_padded_site_changes_a_result_and_cutting_it_off_gives_the_same(
    measure, generator
):
    u = field(generator, 2, 7, 4)
    mask = torch.arange(7) < torch.tensor([[5], [5]])
    for junk in (0.0, 1e9, torch.nan):
        filled = torch.where(mask[..., None], u, junk)
        torch.testing.assert_close(measure(filled, mask), measure(u[:, :5]))


@pytest.mark.parametrize("measure", MEASURES)
def test_a_sequence_of_padding_alone_is_nan(measure, generator):
    found = measure(field(generator, 2, 4, 3), torch.tensor([[True] * 4, [False] * 4]))
    assert found[0].isfinite()
    assert found[1].isnan()


def test_rises_names_the_depths_at_which_energy_grew():
    assert energy.rises([3.0, 2.0, 2.5, 1.0, 1.0]) == [2]


@pytest.mark.parametrize(
    ("layer", "margin"),
    [
        (Diffusion(4, initial_ratio=0.125), 0.75),
        (Diffusion(4, bound=0.5, initial_ratio=0.25), 0.5),
        (Diffusion(4, initial_ratio=0.0), 1.0),
        (Diffusion(4, causal=True, initial_ratio=0.25), 0.75),
        (Diffusion(4, grid=(2, 2), initial_ratio=0.0625), 0.75),
        (Diffusion(4, scheme="backward_euler", initial_ratio=0.5), 1.0),
        (AdaptiveDiffusion(4, initial_ratio=0.125), 0.75),
        (MultiscaleDiffusion(4, initial_ratio=0.125), 0.75),
    ],
)
def test_margin_is_the_distance_to_the_bound(layer, margin):
    assert energy.cfl_margin(layer) == pytest.approx(margin)


def test_margin_is_negative_beyond_the_bound_below_zero_and_without_a_number():
    layer = Diffusion(3, initial_ratio=0.2)
    layer.free = Given(0.75)
    assert energy.cfl_margin(layer) == pytest.approx(-0.5)
    layer.free = Given(-0.1)
    assert energy.cfl_margin(layer) == pytest.approx(-0.2)
    layer.free = Given(math.nan)
    assert energy.cfl_margin(layer) == -math.inf


def test_refuses_a_layer_without_a_ratio():
    with pytest.raises(ValueError, match=r"`layer`.*got Linear"):
        energy.cfl_margin(nn.Linear(2, 2))


def test_a_multiscale_layer_is_found_once():
    model = nn.Sequential(MultiscaleDiffusion(4), nn.Linear(4, 4), Diffusion(4))
    assert list(energy.diffusion_layers(model)) == ["0", "2"]


class Given(nn.Module):
    def __init__(self, ratio):
        super().__init__()
        self.ratio = ratio

    def forward(self):
        return torch.full((3,), self.ratio)
