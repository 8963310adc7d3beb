import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from depthpde.cli.main import main
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.vision import VisionTransformer
from depthpde.simulator.learned import LanguageSimulator, Simulator

MODELS = """
import torch
from depthpde.layers.stabilizer import Stabilizer
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig

def config(**changes):
    return ModelConfig(dim=32, blocks=3, heads=2, vocabulary=29, length=16, classes=3, **changes)

def healthy():
    return Classifier(config(), generator=torch.Generator().manual_seed(0))

def needy(size):
    return size

def broken():
    ids = torch.randint(0, 29, (4, 16), generator=torch.Generator().manual_seed(0))
    bare = config(stabilizer=Stabilizer(residual=False))
    return Classifier(bare, generator=torch.Generator().manual_seed(0)), ids
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "doctor_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "doctor_models", raising=False)
    return tmp_path


def test_a_healthy_model_exits_0_and_writes_its_page(here, capsys):
    assert main(["doctor", "--python", "doctor_models:healthy"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Classifier · 3 blocks · ")
    assert " note: the input is random" in out
    assert out.endswith("page out/doctor.html\n")
    assert "<svg" in (here / "out/doctor.html").read_text(encoding="utf-8")


def test_a_broken_model_exits_1_and_is_told_in_json(here, capsys):
    assert main(["doctor", "--python", "doctor_models:broken", "--json", "--out", "p.html"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["grade"] == "ill"
    ill = [each["condition"] for each in printed["verdicts"] if each["grade"] == "ill"]
    assert {"other block sum", "representational drift"} <= set(ill)
    assert (here / "p.html").is_file()


def test_a_model_is_compared_with_a_reference_and_two_files_with_each_other(here, capsys):
    same = ["doctor", "--python", "doctor_models:healthy", "--reference", "doctor_models:healthy"]
    assert main([*same, "--json"]) == 0
    (here / "before.json").write_text(capsys.readouterr().out, encoding="utf-8")
    assert "healthy in both" in (here / "out/doctor-compared.html").read_text(encoding="utf-8")
    main(["doctor", "--python", "doctor_models:broken", "--json"])
    (here / "after.json").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["doctor", "--compare", "before.json", "after.json"]) == 1
    out = capsys.readouterr().out
    assert " worse   " in out
    assert "depth drift" in out
    assert main(["doctor", "--compare", "after.json", "before.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["grades"] == ["ill", "healthy"]
    assert main(["doctor", "--compare", "a.json", "b.json", "--reference", "bert"]) == 2
    assert "--reference" in capsys.readouterr().err


def test_hugging_face_models_are_examined(here, capsys):
    from transformers import BertConfig, BertModel, ViTConfig, ViTModel

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    BertModel(BertConfig(vocab_size=29, num_hidden_layers=2, **sizes)).save_pretrained("bert")
    ViTModel(ViTConfig(num_hidden_layers=2, image_size=16, patch_size=4, **sizes)).save_pretrained(
        "vit"
    )
    assert main(["doctor", "--hf", "bert", "--length", "9"]) == 0
    short = BertConfig(vocab_size=29, num_hidden_layers=1, max_position_embeddings=8, **sizes)
    BertModel(short).save_pretrained("short")
    assert main(["doctor", "--hf", "short"]) == 0
    assert main(["causality", "--hf", "short"]) == 0, "not causal, and not meant to be"
    assert main(["causality", "--hf", "short", "--causal"]) == 1
    assert main(["doctor", "--hf", "vit"]) == 0
    out = capsys.readouterr().out
    assert "BertModel · 2 blocks" in out
    assert "ViTModel · 2 blocks" in out


def test_a_saved_model_and_a_run_are_examined(here, capsys):
    config = ModelConfig(dim=32, blocks=2, heads=2, vocabulary=29, length=16, classes=3)
    model = Classifier(config, generator=torch.Generator().manual_seed(0))
    model.save_pretrained("alone")
    assert main(["doctor", "--checkpoint", "alone"]) == 0
    run = here / "run"
    model.save_pretrained(run / "model")
    (run / "config.json").write_text(json.dumps({"config": {"task": "listops-mini"}}))
    assert main(["doctor", "--checkpoint", "run", "--prepared", "nowhere"]) == 0
    assert "listops-mini" in capsys.readouterr().out


def test_a_run_is_examined_on_its_own_task_with_gradients(here, capsys):
    from depthpde.data.catalog import prepare
    from depthpde.data.tasks import TASKS

    prepare("listops-mini", out=here / "prepared")
    task = TASKS["listops-mini"]
    config = replace(ModelConfig(dim=32, blocks=2, heads=2), length=task.length)
    model = Classifier(config, task, generator=torch.Generator().manual_seed(0))
    model.save_pretrained(here / "run" / "model")
    (here / "run/config.json").write_text(json.dumps({"config": {"task": "listops-mini"}}))
    assert main(["doctor", "--checkpoint", "run", "--prepared", "prepared"]) == 0
    out = capsys.readouterr().out
    assert " healthy   gradients" in out
    assert "32 sequences" in out
    assert "note:" not in out


SHAPE = {"dim": 32, "blocks": 2, "heads": 2, "vocabulary": 29, "length": 16, "classes": 3}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Simulator, {}),
        (LanguageSimulator, {"causal": True}),
        (Classifier, {"documents": 2}),
        (Classifier, {"input": "linear"}),
        (Classifier, {"input": "linear", "grid": (4, 4), "geometry": "plane",
                      "positions": ("after_embedding",)}),
        (Classifier, {"grid": (4, 4), "geometry": "rows", "positions": ("after_embedding",)}),
        (VisionTransformer, {"grid": (4, 4)}),
    ],
)  # fmt: skip
def test_every_kind_of_our_models_is_examined_where_its_task_is_not_prepared(
    here, capsys, kind, settings
):
    model = kind(ModelConfig(**SHAPE | settings), generator=torch.Generator().manual_seed(0))
    model.save_pretrained("run/model")
    (here / "run/config.json").write_text(json.dumps({"config": {"task": "image"}}))
    line = ["doctor", "--checkpoint", "run", "--prepared", "nowhere", "--length", "9"]
    assert main([*line, "--json", "--out", "p.html"]) in (0, 1), capsys.readouterr().err
    printed = json.loads(capsys.readouterr().out)
    assert printed["trajectory"]["model"] == kind.__name__
    (note,) = [
        each for each in printed["trajectory"]["notes"] if each.startswith("the input is rand")
    ]
    assert note.split(" (")[0] in (here / "p.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--checkpoint", "nowhere"], "must be a folder with config.json, got 'nowhere'"),
        (["--checkpoint", "theirs"], "of one of our models (Classifier, LanguageModel, "),
        (["--checkpoint", "torn"], "must be JSON, got"),
        (["--hf", "nowhere"], "`--hf` must be a folder with config.json, got 'nowhere'"),
        (["--hf", "theirs", "--length", "0"], "`--length` must be at least 1, got 0"),
        (["--python", "doctor_models:healthy", "--text", "t"], "`--text` must go with --hf"),
        (["--python", "doctor_models:healthy", "--thresholds", "theirs/config.json"],
         "must hold thresholds for every condition"),
        (["--python", "doctor_models:healthy", "--out", "theirs"],
         "`--out` must be a file for the page, got the folder theirs"),
        (["--python", "doctor_models:needy"], "must name a function without arguments, got"),
        (["--hf", "theirs"], "`--hf` must be a folder whose model transformers can load"),
    ],
)  # fmt: skip
def test_wrong_input_exits_2_with_one_line(here, capsys, arguments, message):
    for name, text in (("theirs", '{"model_type": "bert"}'), ("torn", "{")):
        (here / name).mkdir()
        (here / name / "config.json").write_text(text)
    assert main(["doctor", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_text_needs_a_tokenizer_and_lines(here, capsys):
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    BertModel(BertConfig(vocab_size=29, num_hidden_layers=1, **sizes)).save_pretrained("bert")
    (here / "empty.txt").write_text("\n")
    assert main(["doctor", "--hf", "bert", "--text", "empty.txt"]) == 2
    assert "`--text` must hold at least one line" in capsys.readouterr().err
    (here / "some.txt").write_text("depth is time\n")
    assert main(["doctor", "--hf", "bert", "--text", "some.txt"]) == 2
    assert "`--text` needs a tokenizer beside the model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prefix", "advice"),
    [
        ("/home/me/.venv", "pip install 'depthpde[hf]'"),
        (
            "/home/me/.cache/uv/archive-v0/Zx9",
            "uvx --from 'depthpde[hf]' depthpde doctor --hf theirs",
        ),
    ],
)
def test_says_which_extra_is_missing(here, capsys, monkeypatch, prefix, advice):
    (here / "theirs").mkdir()
    (here / "theirs" / "config.json").write_text("{}")

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("depthpde.errors.import_module", absent)
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "argv", ["depthpde", "doctor", "--hf", "theirs"])
    assert main(["doctor", "--hf", "theirs"]) == 2
    printed = capsys.readouterr().err
    assert "`--hf` needs transformers" in printed
    assert printed.rstrip().endswith(advice)


EVIL = """
from pathlib import Path
Path("ran").write_text("")
from transformers import BertConfig, BertModel
class EvilConfig(BertConfig):  # transformers marks the class that it loads as code of a folder
    pass
class Evil(BertModel):
    config_class = EvilConfig
"""


def test_code_in_a_model_folder_is_never_run_unless_a_flag_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("builtins.input", lambda *words: "y")
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "modeling_evil.py").write_text(EVIL)
    auto = {"AutoConfig": "modeling_evil.EvilConfig", "AutoModel": "modeling_evil.Evil"}
    output = {"model_type": "evil", "auto_map": auto}
    (tmp_path / "evil" / "config.json").write_text(json.dumps(output))
    assert main(["doctor", "--hf", "evil"]) == 2
    assert "`--hf` must be a folder whose model transformers can load" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()
    main(["doctor", "--hf", "evil", "--trust-remote-code"])
    assert "warning: code in evil is run as you" in capsys.readouterr().err
    assert (tmp_path / "ran").exists()
