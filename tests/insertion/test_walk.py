"""Every position × route of every family, with diffusion and each other layer in turn."""

import pytest
import torch

from insertion.walk import LAYERS, walk
from insertion.zoo import ZOO

WHOLE = "bert"
"""The family that tries every layer at every place; `make drills` does so with all of them."""


@pytest.mark.parametrize("name", ZOO)
def test_every_position_and_route_of_the_family(name):
    turn = None if name == WHOLE else 3 * list(ZOO).index(name)
    with torch.no_grad():
        assert walk(ZOO[name], turn) == []


def test_the_families_together_try_every_layer():
    turns = {(3 * index + k) % (len(LAYERS) - 1) for index in range(len(ZOO)) for k in range(7)}
    assert len(turns) == len(LAYERS) - 1


@pytest.mark.drill
@pytest.mark.parametrize("name", ZOO)
def test_every_position_route_and_layer_of_the_family(name):
    with torch.no_grad():
        assert walk(ZOO[name]) == []
