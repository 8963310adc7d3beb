import json

import pytest

from insertion.alone import run_with_timm


@pytest.fixture(scope="module")
def told():
    return json.loads(run_with_timm())


def test_every_position_route_and_layer_of_timm(told):
    assert told["wrong"] == []


def test_the_plane_is_that_of_the_patches(told):
    assert told["grid"] == [2, 3]
    assert "timm VisionTransformer, pre-norm" in told["told"]


@pytest.mark.parametrize("name", ["resnet", "convnext", "swin"])
def test_behind_any_module_of_a_convolutional_or_windowed_network(told, name):
    assert told[name] == [True, True, True, True, True]


def test_refuses_a_causal_call_and_a_part_without_patches(told):
    assert "`is_causal=True` asks for causal attention" in told["causal"]
    assert "must hold timm's `patch_embed`" in told["part"]
