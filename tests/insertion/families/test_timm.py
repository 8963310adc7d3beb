import json

import pytest

from insertion.alone import run_with_timm


@pytest.fixture(scope="module")
def printed():
    return json.loads(run_with_timm())


def test_every_position_and_route_of_timm(printed):
    assert printed["wrong"] == []


def test_the_plane_is_that_of_the_patches(printed):
    assert printed["grid"] == [2, 3]
    assert "timm VisionTransformer, pre-norm" in printed["told"]


@pytest.mark.parametrize("name", ["resnet", "convnext", "swin"])
def test_behind_any_module_of_a_convolutional_or_windowed_network(printed, name):
    assert printed[name] == [True, True, True, True, True]


def test_refuses_a_causal_call_and_a_part_without_patches(printed):
    assert "`is_causal=True` asks for causal attention" in printed["causal"]
    assert "must hold timm's `patch_embed`" in printed["part"]
