import json
import sys

import pytest

from depthpde.cli.main import main

MODELS = """
from torch import nn
from depthpde.layers.diffusion import Diffusion

class Model(nn.Sequential):
    def __init__(self, causal):
        super().__init__(nn.Embedding(11, 8), Diffusion(8, causal=causal, initial_ratio=0.2),
                         nn.Linear(8, 11))

def clean():
    return Model(causal=True)

def leaking():
    return Model(causal=False)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    (tmp_path / "audit_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "audit_models", raising=False)


def test_a_clean_model_exits_0_and_prints_six_lines(capsys):
    assert main(["audit", "--python", "audit_models:clean", "--causal"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Model: no leak")
    assert len(out.splitlines()) == 7


def test_a_leak_exits_1_names_its_module_and_writes_the_page(capsys, tmp_path):
    words = ["audit", "--python", "audit_models:leaking", "--causal", "--json"]
    assert main([*words, "--out", "page.html"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["leaks"] == ["future"]
    assert printed["answers"][0]["module"] == "1"
    assert "1 leak" in (tmp_path / "page.html").read_text()


def test_a_saved_model_is_loaded_with_its_head(capsys):
    from isolation.faults import healthy

    healthy("gpt2").save_pretrained("gpt2")
    assert main(["audit", "--hf", "gpt2"]) == 0
    assert "GPT2LMHeadModel: no leak" in capsys.readouterr().out
    healthy("bart").save_pretrained("bart")
    assert main(["audit", "--hf", "bart", "--length", "6"]) == 0


def test_one_of_our_own_checkpoints_is_audited(capsys):
    from isolation.faults import healthy

    healthy("ours").save_pretrained("ours")
    assert main(["audit", "--checkpoint", "ours"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hf", "nowhere"], "must be a folder with config.json"),
        (["--python", "audit_models:clean", "--length", "0"], "`--length` must be at least 1"),
        (["--python", "audit_models:clean", "--length", "2"], "at least 4 real sites"),
        (["--python", "audit_models:clean", "--out", "."], "must be a file for the page"),
    ],
)
def test_wrong_input_exits_2(capsys, words, message):
    assert main(["audit", *words]) == 2
    assert message in capsys.readouterr().err
