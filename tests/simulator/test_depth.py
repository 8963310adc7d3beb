import pytest
import torch

from depthpde.layers.reaction import FeedForward
from depthpde.seeds import generator
from depthpde.simulator.depth import Interpolated


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(0, "depth"), dtype=torch.float64)


def layer(seed: int, hidden: int = 6) -> FeedForward:
    made = FeedForward(4, hidden, dtype=torch.float64)
    with torch.no_grad():
        for name, each in made.named_parameters():
            each.copy_(torch.randn(each.shape, generator=generator(seed, name)))
    return made


def test_interpolated_weights_are_those_of_a_layer_at_its_own_time():
    u, layers = draw(1, 3, 4), [layer(seed) for seed in range(3)]
    between = Interpolated(layers)
    assert len(between) == 3
    for index, each in enumerate(layers):
        assert torch.equal(between(u, float(index)), each(u))
    assert torch.equal(between(u, 7.5), layers[-1](u)), "constant beyond the last"
    assert torch.equal(between(u, -1.0), layers[0](u)), "and before the first"


def test_interpolated_weights_lie_between_and_carry_gradients_to_both():
    u, layers = draw(1, 3, 4), [layer(seed) for seed in range(2)]
    middle = layer(0)
    with torch.no_grad():
        for name, each in middle.named_parameters():
            each.copy_(0.75 * each + 0.25 * layers[1].get_parameter(name))
    between = Interpolated(layers, start=5.0)
    torch.testing.assert_close(between(u, 5.25), middle(u))
    between(u, 5.25).sum().backward()
    assert all(each.grad is not None for one in layers for each in one.parameters())


def test_refuses_to_interpolate_nothing():
    with pytest.raises(ValueError, match="`modules` must hold at least one module, got none"):
        Interpolated([])


def test_refuses_to_interpolate_what_is_not_alike():
    with pytest.raises(ValueError, match=r"`modules` must be alike.*at index 1"):
        Interpolated([layer(0), layer(1, hidden=5)])


def test_what_comes_after_is_applied_to_the_result():
    u, layers = draw(1, 3, 4), [layer(seed) for seed in range(2)]
    doubled = Interpolated(layers, then=lambda v: 2 * v)
    assert torch.equal(doubled(u, 0.5), 2 * Interpolated(layers)(u, 0.5))
