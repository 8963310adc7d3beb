"""``depthpde demo``: four models, a paired table, a page, and what three seeds cannot show."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.cli.main import main
from depthpde.data.catalog import prepare
from depthpde.data.tasks import TASKS
from depthpde.records.record import read_grids, read_records

SMALL = {"train": 96, "validation": 32, "test": 48}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Run the demo with few examples and updates, and return its words and its folder."""
    prepared = tmp_path_factory.mktemp("prepared")
    out = tmp_path_factory.mktemp("demo")
    prepare(replace(TASKS["listops-mini"], splits=SMALL), out=prepared)
    return ["demo", "--updates", "4", "--out", str(out), "--prepared", str(prepared)], out


def test_the_demo_compares_four_models_over_three_paired_seeds(shown, capsys):
    words, out = shown
    assert main(words) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0].startswith("demo · listops-mini · 3 paired seeds")
    for name in ("baseline", "after embedding", "multi-scale", "depthwise conv"):
        assert any(line.startswith(name) for line in lines)
    assert "root operator" in told.out
    assert "cannot reach p ≤ 0.05" in told.out
    assert "cannot show that one model is better" in told.out
    page = Path(told.out.split("page: ")[1].strip())
    assert "<html" in page.read_text()
    assert len(read_records(out).found) == 12
    assert {cell.seed for cell in read_grids(out).by_name["demo"].cells} == {0, 1, 2}


def test_a_second_demo_computes_nothing_and_says_the_same_to_scripts(shown, capsys):
    words, out = shown
    assert main([*words, "--json"]) == 0
    told = capsys.readouterr()
    said = json.loads(told.out)
    assert any("cannot reach" in each for each in said["warnings"])
    assert {row["variant"] for row in said["rows"]} >= {"multi-scale", "depthwise conv"}
    assert ": done" not in told.err
    assert {each.status["attempts"] for each in read_records(out).found.values()} == {1}


def test_one_seed_and_one_process_are_not_many(shown, capsys):
    words, _ = shown
    assert main([*words, "--seeds", "1", "--workers", "1"]) == 0
    told = capsys.readouterr()
    assert "4 runs of 4 updates in 1 process\n" in told.err
    assert "One small task and 1 seed\ncannot show" in told.out


def test_wrong_numbers_are_answered(tmp_path, capsys):
    assert main(["demo", "--seeds", "0", "--out", str(tmp_path)]) == 2
    assert "`seeds` must be at least 1, got 0" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--updates", "--workers"])
def test_nothing_at_all_is_refused_and_not_taken_for_the_default(option, tmp_path, capsys):
    assert main(["demo", option, "0", "--out", str(tmp_path)]) == 2
    assert f"`{option}` must be at least 1, got 0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
