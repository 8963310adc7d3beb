"""The table tells ratios; how large they are is the benchmark's business."""

from __future__ import annotations

import json

import pytest

from depthpde.cli.main import main


def test_every_line_has_two_ratios(capsys):
    assert main(["bench", "--shape", "2", "16", "4", "--rounds", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 5
    assert all(row["forward"] > 0 and row["both"] > 0 for row in rows)


def test_the_table_names_the_field(capsys):
    assert main(["bench", "--shape", "1", "8", "4", "--rounds", "1", "--steps", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1×8×4, float32; times as multiples of one copy")
    assert "diffuse, 2 steps" in out


@pytest.mark.parametrize("words", [["--shape", "0", "8", "4"], ["--rounds", "0"], ["--steps", "0"]])
def test_refuses_what_cannot_be_measured(words, capsys):
    assert main(["bench", *words]) == 2
    assert f"`{words[0]}` must be at least 1, got 0" in capsys.readouterr().err


def test_refuses_to_measure_for_ever(capsys):
    assert main(["bench", "--rounds", "1000000000"]) == 2
    assert "`--rounds` must lie in [1, 10000], got 1e+09" in capsys.readouterr().err
