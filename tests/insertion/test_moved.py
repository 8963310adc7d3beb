import torch
from torch import nn

from depthpde.insertion.moved import moved_weights
from depthpde.layers.diffusion import Diffusion


def test_a_ratio_of_zero_is_moved_to_half_its_bound_and_others_are_kept():
    layer = Diffusion(3, initial_ratio=0.0)
    with torch.no_grad():
        next(layer.parameters())[1] = 0.1
    (moved,) = moved_weights(layer).values()
    torch.testing.assert_close(moved, torch.tensor([0.125, 0.1, 0.125]))
    assert not moved_weights(Diffusion(3))


def test_weights_that_are_no_ratio_move_only_inside_the_part_that_is_meant():
    model = nn.ModuleDict({"inside": nn.Linear(2, 2), "other": nn.Linear(2, 2)})
    moved = moved_weights(model, inside="inside")
    assert set(moved) == {"inside.weight", "inside.bias"}
    assert (moved["inside.weight"] > model["inside"].weight).all()
    assert len(moved_weights(model)) == 4
