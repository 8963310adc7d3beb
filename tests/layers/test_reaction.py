import pytest
import torch
from torch import nn
from torch.nn import functional as F

from depthpde.layers.reaction import Activation, FeedForward


@pytest.mark.parametrize("activation", list(Activation))
def test_every_activation_is_the_one_of_its_name(activation):
    u = torch.linspace(-3, 3, 31, dtype=torch.float64)
    assert torch.equal(activation(u), getattr(F, activation.value)(u))


def test_feed_forward_is_two_maps_with_a_nonlinearity_between():
    layer = FeedForward(4, 7, activation="relu", dtype=torch.float64)
    u = torch.randn(2, 3, 4, dtype=torch.float64)
    wanted = nn.Sequential(layer.enter, nn.ReLU(), layer.out)(u)
    torch.testing.assert_close(layer(u), wanted, rtol=0, atol=1e-13)


def test_nothing_passes_between_sites():
    layer = FeedForward(4, 8, dtype=torch.float64)
    u = torch.randn(1, 5, 4, dtype=torch.float64)
    changed = u.clone()
    changed[:, 2] += 1
    same = (layer(u) == layer(changed)).all(dim=-1)[0]
    assert same.tolist() == [True, True, False, True, True]


def test_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"`activation` must be one of gelu.*did you mean 'gelu'"):
        FeedForward(4, 8, activation="glu")
    with pytest.raises(ValueError, match=r"`hidden`.*1.*got 0"):
        FeedForward(4, 0)
    with pytest.raises(ValueError, match=r"`u` must have 4 features"):
        FeedForward(4, 8)(torch.zeros(1, 2, 3))


def test_says_which_nonlinearity_it_has():
    assert "activation=silu" in repr(FeedForward(4, 8, activation="silu"))
