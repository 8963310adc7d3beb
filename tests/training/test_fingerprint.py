from dataclasses import replace

import numpy as np
import pytest
import torch

from depthpde.simulator.config import SimulatorConfig
from depthpde.simulator.learned import Simulator
from depthpde.training.fingerprint import identity, weights_digest
from depthpde.training.loop import train
from training.counting import make_config, make_model, make_split


def test_whatever_changes_the_numbers_changes_the_identity(split, validation):
    same = identity(make_model(), split, validation, make_config())
    assert identity(make_model(), make_split(), validation, make_config()) == same
    flipped = replace(split, labels=1 - split.labels)
    others = [
        identity(make_model(dim=16), split, validation, make_config()),
        identity(make_model(positions=()), split, validation, make_config()),
        identity(make_model(), flipped, validation, make_config()),
        identity(make_model(), replace(split, tokens=split.tokens ^ 1), validation, make_config()),
        identity(make_model(), split, None, make_config()),
        identity(make_model(), split, validation, make_config(seed=1)),
    ]
    assert all(other != same for other in others)


def test_another_integrator_is_another_run(split, tmp_path):
    shape = make_model(positions=()).config

    def simulator(**settings):
        chosen = torch.Generator().manual_seed(0)
        return Simulator(shape, simulator=SimulatorConfig(**settings), generator=chosen)

    config = make_config(updates=2, warmup=1)
    train(simulator(), split, config, folder=tmp_path)
    with pytest.raises(ValueError, match=r"one with model\.simulator\.method = 'lie' where"):
        train(simulator(method="heun"), split, config, folder=tmp_path)


def test_a_plain_module_has_an_identity(split):
    found = identity(torch.nn.Linear(2, 3), split, None, make_config())
    assert found["model"] == {
        "class": "Linear",
        "config": {},
        "shapes": {"weight": [3, 2], "bias": [3]},
    }


def test_a_digest_sees_names_shapes_and_every_bit():
    weights = {"a": torch.zeros(2, 3), "b": torch.tensor(True)}
    same = weights_digest(weights)
    assert weights_digest(dict(reversed(weights.items()))) == same
    others = [
        {**weights, "a": torch.zeros(3, 2)},
        {**weights, "a": -torch.zeros(2, 3)},
        {**weights, "a": torch.full((2, 3), np.float32(1e-45))},
        {"c": weights["a"], "b": weights["b"]},
    ]
    assert len({same, *map(weights_digest, others)}) == 5
