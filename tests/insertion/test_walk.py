"""Every position × route × layer × family."""

import pytest
import torch

from insertion.walk import walk
from insertion.zoo import ZOO


@pytest.mark.parametrize("name", ZOO)
def test_every_position_route_and_layer_of_the_family(name):
    with torch.no_grad():
        assert walk(ZOO[name]) == []
