"""A saved insertion makes itself again, and leaves nothing where it cannot."""

import json

import pytest
import torch
from torch import nn

import depthpde as dp


def make(dim=16, blocks=2):
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(block, blocks, enable_nested_tensor=False).eval()


@pytest.fixture
def saved(tmp_path):
    model = make()
    inserted = dp.insert(model, "after_ffn", layer="multiscale", route="stream", blocks=[1])
    with torch.no_grad():
        for each in inserted.parameters():
            each.add_(0.05 * torch.rand_like(each))
    return model, inserted.save_pretrained(tmp_path / "deep" / "diffusion")


def test_outputs_are_the_same_to_the_bit(saved):
    model, folder = saved
    again = make()
    inserted = dp.insert_from(again, folder)
    u = torch.randn(2, 5, 16)
    assert torch.equal(again(u), model(u))
    assert list(inserted.layers) == ["after_ffn_stream_1"]


def test_a_model_of_another_size_is_left_as_it_was(saved):
    other = make(dim=8)
    keys = list(other.state_dict())
    with pytest.raises(ValueError, match="another size"):
        dp.insert_from(other, saved[1])
    assert list(other.state_dict()) == keys


def test_what_a_function_built_cannot_make_itself_again(tmp_path):
    made = dp.insert(make(), "after_ffn", layer=lambda dim, causal: dp.Diffusion(dim))
    with pytest.raises(ValueError, match="function"):
        made.save_pretrained(tmp_path)


def test_a_folder_without_or_of_another_format_is_named(tmp_path, saved):
    with pytest.raises(FileNotFoundError, match=r"insertion\.json"):
        dp.insert_from(make(), tmp_path)
    (saved[1] / "insertion.json").write_text(json.dumps({"format": 9}))
    with pytest.raises(ValueError, match="got 9"):
        dp.insert_from(make(), saved[1])


def test_a_layer_behind_a_named_module_makes_itself_again(tmp_path):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)

        def forward(self, input):
            return self.conv(input).relu()

    def build():
        torch.manual_seed(0)
        return Net()

    images = torch.randn(2, 3, 6, 6)
    model = build()
    inserted = dp.insert(
        model, at="conv", layout="bchw", causal=False, initial_ratio=0.1, batch={"input": images}
    )
    folder = inserted.save_pretrained(tmp_path / "saved")
    again = build()
    dp.insert_from(again, folder, batch={"input": images})
    assert torch.equal(again(images), model(images))
    assert not torch.equal(again(images), build()(images))
