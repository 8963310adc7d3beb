import json

import pytest

from depthpde.cli.main import main
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig


def test_without_a_name_the_systems_are_listed(capsys):
    assert main(["simulate"]) == 0
    listed = capsys.readouterr().out
    assert "clustering" in listed
    assert "2√(rD)" in listed


def test_a_system_is_simulated_compared_and_drawn(tmp_path, capsys):
    words = ["simulate", "equiangular", "--set", "beta=3", "--out", str(tmp_path), "--json"]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["parameters"]["beta"] == 3.0
    assert record["known"][0]["agrees"]
    assert record["statistics"]["evaluations"]["interaction"] > 0
    assert (tmp_path / "equiangular.html").read_text().startswith("<!doctype html>")


def test_what_does_not_agree_is_told_by_the_exit_code(tmp_path, capsys):
    # One crude step in a hundred of the accuracy that the formula is compared at.
    words = ["simulate", "equiangular", "--rtol", "0.3", "--out", str(tmp_path)]
    assert main(words) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_work_against_precision_is_a_table_too(tmp_path, capsys):
    words = ["simulate", "equiangular", "--set", "end=0.5", "--work-precision"]
    main([*words, "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert "tolerance or steps" in out
    assert "rk4" in out


def test_a_saved_models_equation_is_simulated_and_its_picture_moves(tmp_path, capsys):
    config = ModelConfig(dim=8, heads=2, blocks=2, vocabulary=7, length=10, classes=3)
    saved = Classifier(config).save_pretrained(tmp_path / "model")
    words = ["simulate", "trained", "--checkpoint", str(saved), "--gif", "--json"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert all(each["agrees"] for each in record["known"])
    assert (tmp_path / "trained.gif").read_bytes()[:3] == b"GIF"


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["clusterin"], "did you mean 'clustering'"),
        (["clustering", "--set", "beta"], "KEY=VALUE"),
        (["clustering", "--method", "rk5"], "did you mean"),
        (["clustering", "--rtol", "0"], "must be positive"),
        (["clustering", "--checkpoint", "x"], "must stand beside the system 'trained'"),
        (["trained", "--checkpoint", "x", "--set", "blocks=2"], "without --set"),
    ],
)
def test_wrong_input_is_told_in_one_line(words, output, capsys, tmp_path):
    assert main(["simulate", *words, "--out", str(tmp_path)]) == 2
    assert output in capsys.readouterr().err


def test_a_model_that_takes_no_tokens_is_refused(tmp_path, capsys):
    config = ModelConfig(dim=8, heads=2, blocks=1, classes=3, input="patch", grid=(2, 2))
    saved = Classifier(config).save_pretrained(tmp_path / "model")
    assert main(["simulate", "trained", "--checkpoint", str(saved), "--out", str(tmp_path)]) == 2
    assert "must be a model of tokens" in capsys.readouterr().err
