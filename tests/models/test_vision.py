from types import SimpleNamespace

import pytest
import torch

from depthpde.models.config import ModelConfig
from depthpde.models.position import Position
from depthpde.models.vision import VisionTransformer

IMAGE = {"dim": 8, "heads": 2, "patch": 2, "channels": 3, "grid": (3, 4), "classes": 5}


@pytest.fixture
def images():
    return torch.randn(2, 3, 6, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
@pytest.mark.parametrize("layer", ["diffusion", "multiscale"])
def test_a_plane_of_patches_takes_every_position(images, pooling, layer):
    config = ModelConfig(**IMAGE, positions=tuple(Position), layer=layer, pooling=pooling)
    logits = VisionTransformer(config)(images)
    assert logits.shape == (2, 5)
    assert torch.isfinite(logits).all()


def test_turning_the_image_turns_the_smoothed_field(images):
    config = ModelConfig(**IMAGE, positions=("after_embedding",), encoding="none")
    upright = VisionTransformer(config, generator=torch.Generator()).double()
    layer = upright.encoder.placed.layers["after_embedding"].layer
    u = torch.randn(1, 12, 8, dtype=torch.float64)
    turned = u.reshape(1, 3, 4, 8).transpose(1, 2).reshape(1, 12, 8)
    other = VisionTransformer(
        ModelConfig(**{**IMAGE, "grid": (4, 3)}, positions=("after_embedding",), encoding="none")
    ).double()
    mirrored = other.encoder.placed.layers["after_embedding"].layer(turned)
    wanted = layer(u).reshape(1, 3, 4, 8).transpose(1, 2).reshape(1, 12, 8)
    torch.testing.assert_close(mirrored, wanted, rtol=0, atol=1e-14)


def test_a_line_of_patches_is_a_control(images):
    plane = VisionTransformer(
        ModelConfig(**IMAGE, positions=("after_ffn",)), generator=torch.Generator()
    )
    line = VisionTransformer(
        ModelConfig(**IMAGE, positions=("after_ffn",), geometry="line"),
        generator=torch.Generator(),
    )
    assert not torch.allclose(plane(images), line(images))


def test_an_image_task_fills_in_grid_and_classes():
    task = SimpleNamespace(kind="image", length=64, vocabulary=256, classes=10, grid=(8, 8))
    model = VisionTransformer(ModelConfig(dim=8, patch=4), task)
    assert (model.config.grid, model.config.classes) == ((2, 2), 10)
    assert model(torch.randn(3, 1, 8, 8)).shape == (3, 10)


def test_refuses_images_of_another_size(images):
    model = VisionTransformer(ModelConfig(**IMAGE))
    with pytest.raises(ValueError, match=r"`u`.*12.*got 16"):
        model(torch.zeros(1, 3, 8, 8))
    with pytest.raises(ValueError, match=r"`images` must be \[batch, 3, height, width\]"):
        model(images[:, :1])
