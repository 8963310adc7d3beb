import json
import sys

import pytest
import torch

from depthpde.layers.embedding import InputKind
from depthpde.models.classifier import Classifier
from depthpde.models.language import LanguageModel
from depthpde.models.position import Position
from depthpde.models.pretrained import CONFIG, WEIGHTS
from depthpde.models.vision import VisionTransformer


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", [Classifier, LanguageModel, VisionTransformer])
def test_a_saved_model_comes_back_to_the_bit(small, tokens, tmp_path, kind, dtype):
    settings = {"positions": tuple(Position), "layer": "multiscale", "dropout": 0.1}
    inputs = tokens
    if kind is VisionTransformer:
        settings |= {"grid": (3, 4), "patch": 2}
        inputs = torch.randn(2, 1, 6, 8, dtype=dtype)
    model = kind(small(**settings)).to(dtype).eval()
    torch.nn.init.normal_(model.encoder.blocks[0].placed.layers["after_ffn"].layer.logits)
    folder = model.save_pretrained(tmp_path / "deep" / "model")
    back = kind.from_pretrained(folder)
    assert back.config == model.config
    assert not back.training
    assert torch.equal(back(inputs), model(inputs))
    for name, numbers in model.state_dict().items():
        assert torch.equal(back.state_dict()[name], numbers), name


def test_a_saved_model_is_two_plain_files(small, tmp_path):
    Classifier(small(positions=("after_ffn",))).save_pretrained(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [CONFIG, WEIGHTS]
    output = json.loads((tmp_path / CONFIG).read_text())
    assert output["model"] == "Classifier"
    assert output["config"]["positions"] == ["after_ffn"]


def test_loading_leaves_torchs_own_stream_alone(small, tmp_path):
    Classifier(small()).save_pretrained(tmp_path)
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    Classifier.from_pretrained(tmp_path)
    assert torch.equal(torch.rand(3), wanted)


def test_refuses_a_folder_without_a_model(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"without config.json and model.safetensors"):
        Classifier.from_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"write one with save_pretrained"):
        Classifier.from_pretrained(tmp_path / "nowhere")


def test_refuses_a_model_of_another_class(small, tmp_path):
    Classifier(small()).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"must.*LanguageModel, got 'Classifier'"):
        LanguageModel.from_pretrained(tmp_path)
    (tmp_path / CONFIG).write_text("[1]")
    with pytest.raises(ValueError, match=r"must.*Classifier, got \[1\]"):
        Classifier.from_pretrained(tmp_path)


def test_refuses_weights_of_another_shape(small, tmp_path):
    Classifier(small(dim=16)).save_pretrained(tmp_path / "wide")
    Classifier(small()).save_pretrained(tmp_path)
    (tmp_path / WEIGHTS).write_bytes((tmp_path / "wide" / WEIGHTS).read_bytes())
    with pytest.raises(ValueError, match=r"must.*beside it"):
        Classifier.from_pretrained(tmp_path)


def test_refuses_weights_that_are_not_whole(small, tmp_path):
    Classifier(small()).save_pretrained(tmp_path)
    (tmp_path / WEIGHTS).write_bytes((tmp_path / WEIGHTS).read_bytes()[:5])
    with pytest.raises(ValueError, match=r"must.*file, got .* save it again"):
        Classifier.from_pretrained(tmp_path)


def test_names_the_extra_that_the_hub_needs(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"pip install 'depthpde\[hf\]'"):
        Classifier.from_pretrained("somebody/something")
    with pytest.raises(ValueError, match=r"pip install 'depthpde\[hf\]'"):
        Classifier(small()).push_to_hub("somebody/something")


def test_a_model_comes_from_the_hubs_cache(small, tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants", reason="needs the extra hf")
    model = Classifier(small())
    cached = tmp_path / "models--somebody--something"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("0" * 40)
    model.save_pretrained(cached / "snapshots" / ("0" * 40))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    back = Classifier.from_pretrained("somebody/something")
    assert torch.equal(back.head.weight, model.head.weight)
    assert back.config.input is InputKind.TOKEN
