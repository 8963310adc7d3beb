"""Canon and smear are what their equations say, stop at walls and start as the identity."""

import pytest
import torch

from depthpde.layers.registry import LayerConfig, build_layer
from depthpde.layers.rivals import Canon, Smear
from depthpde.training.config import TrainingConfig
from depthpde.training.optimizer import build_optimizer

DTYPE = torch.float64


def moved(layer):
    with torch.no_grad():
        layer.theta.copy_(torch.randn(layer.theta.shape, dtype=DTYPE))
    return layer


def test_canon_is_a_causal_convolution_of_width_four_added_to_the_field():
    layer, u = moved(Canon(3, dtype=DTYPE)), torch.randn(2, 9, 3, dtype=DTYPE)
    taps = layer.theta.detach()
    wanted = sum(taps[3 - k] * u[:, 5 - k] for k in range(4))
    torch.testing.assert_close(layer(u)[:, 5], wanted)
    assert layer.is_causal


def test_smear_adds_a_share_of_the_site_before_that_content_opens():
    layer, u = moved(Smear(3, dtype=DTYPE)), torch.randn(2, 9, 3, dtype=DTYPE)
    rate, weight = layer.theta[0], layer.theta[1:]
    gate = torch.sigmoid((u[:, 1:] * weight).sum(-1, keepdim=True))
    wanted = torch.cat((u[:, :1], u[:, 1:] + rate * gate * u[:, :-1]), dim=1)
    torch.testing.assert_close(layer(u), wanted)


@pytest.mark.parametrize("kind", ["canon", "smear"])
def test_nothing_crosses_a_wall(kind):
    layer = moved(build_layer(LayerConfig(kind=kind), 3).double())
    u = torch.randn(1, 8, 3, dtype=DTYPE)
    parts = torch.cat((layer(u[:, :5]), layer(u[:, 5:])), dim=1)
    segments = torch.tensor([[0] * 5 + [1] * 3])
    torch.testing.assert_close(layer(u, None, segments), parts)
    mask = torch.arange(8)[None] < 5
    torch.testing.assert_close(layer(u, mask)[:, :5], layer(u[:, :5]))


@pytest.mark.parametrize("kind", ["canon", "smear"])
def test_they_start_as_the_identity_and_learn_with_diffusions_gain(kind):
    layer, u = build_layer(LayerConfig(kind=kind), 3), torch.randn(2, 8, 3)
    assert torch.equal(layer(u), u)
    (group,) = build_optimizer(layer, TrainingConfig(ratio_gain=10.0)).param_groups
    assert group["gain"] == 10.0
    started = build_layer(LayerConfig(kind=kind, initial_ratio=0.25), 3)(u)
    torch.testing.assert_close(started[:, 1:], u[:, 1:] + 0.25 * u[:, :-1])
