import json

import pytest

from depthpde.cli.main import main


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["clusterin"], "did you mean 'clustering'"),
        (["clustering", "--set", "beta"], "KEY=VALUE"),
        (["clustering", "--method", "rk5"], "did you mean"),
        (["clustering", "--rtol", "0"], "must be positive"),
    ],
)
def test_wrong_input_is_told_in_one_line(words, said, capsys, tmp_path):
    assert main(["simulate", *words, "--out", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
