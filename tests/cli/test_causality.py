import json
import sys
from pathlib import Path

import pytest

from depthpde.cli.main import main

MODELS = """
import torch
from torch import nn
from depthpde.layers.diffusion import Diffusion

class Model(nn.Sequential):
    def __init__(self, causal):
        super().__init__(nn.Embedding(11, 8), Diffusion(8, causal=causal), nn.Linear(8, 11))

def clean():
    return Model(causal=True)

def leaking():
    return Model(causal=False)

def fed():
    return Diffusion(8), torch.randn(2, 5, 8)

def nothing():
    return 3

def narrow():
    return nn.Linear(8, 8), torch.randn(2, 5, 3)

def unfed():
    return nn.Linear(8, 8)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "causality_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "causality_models", raising=False)
    return tmp_path


def test_a_clean_model_exits_0(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causality", "--python", "causality_models:clean"]) == 0
    assert capsys.readouterr().out.startswith("causal: no site sees its future")


def test_a_leaking_model_exits_1_and_names_the_module(here, capsys) -> None:
    assert main(["causality", "--python", "causality_models:leaking", "--causal"]) == 1
    assert "leaks through 1 (Diffusion)" in capsys.readouterr().out


def test_a_function_in_a_file_elsewhere_is_found(here, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert main(["causality", "--python", "../causality_models.py:leaking", "--causal"]) == 1
    assert "leaks through" in capsys.readouterr().out


def test_a_model_that_is_not_meant_to_be_causal_is_no_failure(here, capsys) -> None:
    assert main(["causality", "--python", "causality_models:leaking"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("not causal, and not meant to be")
    assert "--causal" in output


def test_json_holds_the_verdict(here, capsys) -> None:
    assert main(["causality", "--python", "causality_models:fed", "--json", "--causal"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["meant_causal"] is True
    assert printed["leaks"] is True
    assert printed["length"] == 5


def test_a_saved_hugging_face_model_is_checked(here, capsys) -> None:
    from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(GPT2Config(vocab_size=29, n_embd=16, n_layer=1, n_head=2)).save_pretrained(
        "gpt2"
    )
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    BertModel(BertConfig(vocab_size=29, num_hidden_layers=1, **sizes)).save_pretrained("bert")
    assert main(["causality", "--hf", "gpt2", "--length", "9"]) == 0
    assert main(["causality", "--hf", "bert", "--length", "9", "--causal"]) == 1
    assert "encoder.layer.0.attention.self" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hf", "nowhere"], "must be a folder with config.json, got 'nowhere'"),
        (["--python", "causality_models"], "must name a function as module:function"),
        (["--python", "."], "got '.'; name the function"),
        (["--python", ".models:f"], "got '.models:f'; name the function"),
        (["--python", "causality_models:absent"], "must name a function as module:function"),
        (["--python", "no_such_module:f"], "must name a function as module:function"),
        (["--python", "causality_models:nothing"], "returns a torch.nn.Module or (model, inputs)"),
        (["--python", "causality_models:unfed"], "must embed tokens, got one without nn.Embedding"),
        (["--python", "causality_models:clean", "--length", "0"], "`--length` must be at least 1"),
    ],
)
def test_wrong_input_exits_2_and_says_what_to_do(here, capsys, arguments, message) -> None:
    assert main(["causality", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_model_that_cannot_take_its_input_is_no_verdict(here, capsys) -> None:
    assert main(["causality", "--python", "causality_models:narrow"]) == 2
    output = capsys.readouterr().err
    assert "RuntimeError" in output
    assert "mat1 and mat2 shapes cannot be multiplied" in output


def test_a_missing_library_names_the_extra(here, capsys, monkeypatch) -> None:
    (here / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["causality", "--hf", "."]) == 2
    assert "pip install 'depthpde[hf]'" in capsys.readouterr().err
