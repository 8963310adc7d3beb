"""An experiment stops, goes on, and ends in its verdicts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from depthpde.cli.main import main
from depthpde.data.catalog import prepare
from depthpde.data.tasks import TASKS
from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.record import read_records

ASKED = ["--scale", "quick", "--seeds", "1", "--tasks", "listops-mini", "--workers", "2"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Prepare ListOps with few examples in a cache folder of its own, and return that."""
    folder = tmp_path_factory.mktemp("cache")
    small = {"train": 96, "validation": 16, "test": 32}
    prepare(replace(TASKS["listops-mini"], splits=small), out=folder / "depthpde" / "data")
    return folder


def test_without_a_name_every_experiment_is_listed(capsys):
    assert main(["reproduce"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.drill
def test_a_grid_is_interrupted_goes_on_and_ends_in_verdicts(cache, tmp_path):
    words = ["reproduce", "commutation", *ASKED, "--out", str(tmp_path), "--json"]
    command = [sys.executable, "-m", "depthpde.cli.main", *words]
    settings = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    first = subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while not any(each.result for each in read_records(tmp_path).found.values()):
        assert time.monotonic() < deadline, "no run was recorded in five minutes"
        time.sleep(0.2)
    first.send_signal(signal.SIGINT)
    _, output = first.communicate(timeout=300)
    assert first.returncode == 130, output.decode()
    assert b"the same command goes on" in output
    done = {each.id for each in read_records(tmp_path).found.values() if each.result}
    again = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert found["name"] == "commutation"
    assert {row["verdict"] for row in found["rows"]} == {"inconclusive"}, "one seed"
    records = read_records(tmp_path).found
    assert len(records) == 8
    assert done < set(records)
    assert (tmp_path / "report" / "report.html").is_file()
    shown = main(["reproduce", "commutation", *ASKED, "--out", str(tmp_path), "--judge"])
    assert shown == 0


@pytest.mark.drill
def test_an_experiment_of_its_own_is_run_and_its_findings_are_shown_again(tmp_path, capsys):
    words = ["reproduce", "efficiency", "--out", str(tmp_path)]
    assert main([*words, "--scale", "quick", "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert "claim     Paper A: " in out
    assert "verdict   " in out
    assert main([*words, "--judge"]) == 0
    assert capsys.readouterr().out == out
    assert main([*words, "--judge", "--scale", "mini"]) == 2
    assert "`scale` must be 'quick', that of" in capsys.readouterr().err
    assert main(words) == 2, "nothing of another scale is written over"
    assert "`scale` must be 'quick', that of" in capsys.readouterr().err


@pytest.mark.drill
def test_an_experiment_of_paper_b_is_judged_by_what_is_recorded(
    cache, tmp_path, capsys, monkeypatch
):
    """It is computed with tasks of a folder that is named, and judged with those of the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    results = tmp_path / "results"
    words = ["reproduce", "discretization", "--scale", "quick", "--out", str(results)]
    named = ["--prepared", str(cache / "depthpde" / "data")]
    assert main([*words, *named, "--judge", "--seeds", "1"]) == 2
    assert "must hold all 1 runs of 'discretization'" in capsys.readouterr().err
    assert not results.exists()
    assert main([*words, *named, "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert not (tmp_path / "none").exists()
    (results / "findings" / "discretization.json").unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    assert main([*words, "--judge", "--seeds", "1"]) == 0
    assert capsys.readouterr().out == out
    assert main([*words, "--judge", "--seeds", "2"]) == 2
    printed = capsys.readouterr().err
    assert "must hold all 2 runs of 'discretization'" in printed
    assert "got 1; compute the rest without --judge" in printed
    assert len(read_records(results).found) == 1


def test_the_folder_of_prepared_tasks_reaches_the_runs_of_a_grid(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    words = ["reproduce", "commutation", *ASKED, "--out", str(tmp_path)]
    assert main([*words, "--prepared", str(tmp_path / "file")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err
    assert not read_records(tmp_path).found, "nothing begins without its data"


def test_the_device_reaches_the_runs_of_paper_b(cache, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    words = ["reproduce", "discretization", "--scale", "quick", "--seeds", "1"]
    assert main([*words, "--out", str(tmp_path), "--device", "abacus"]) == 2
    printed = capsys.readouterr().err
    assert "must hold all 1 runs of 'discretization'" in printed
    assert "abacus" in printed


OWN = """
tasks: [listops-mini]
model: {dim: 8, heads: 2, hidden: 16, blocks: 1}
training: {updates: 4, warmup: 1, batch_size: 8, evaluate_every: 4}
variants: {plain: {}, placed: {model: {positions: [after_embedding]}}}
study:
  tuning_seeds: [200]
  test_seeds: [100, 101]
  rates: [0.001]
  endpoints: [accuracy]
  contrasts: [{variant: placed, against: plain, endpoint: accuracy}]
  looks: [{seeds: 1, p: 0.01}, {seeds: 2, p: 0.04}]
"""


def test_a_grid_of_ones_own_under_a_protocol_ends_in_verdicts(cache, tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text(OWN)
    results, prepared = tmp_path / "out", cache / "depthpde" / "data"
    asked = ["reproduce", str(path), "--out", str(results), "--prepared", str(prepared)]
    assert main([*asked, "--seeds", "1", "--json"]) == 0
    assert "look 1 of 2" in json.loads(capsys.readouterr().out)["notes"][0]
    assert main([*asked, "--judge", "--seeds", "2"]) == 2
    assert "must hold 2 finished seeds of every cell" in capsys.readouterr().err
    assert main([*asked, "--seeds", "2", "--json"]) == 0
    printed = capsys.readouterr()
    assert "doubt: a look at 1 seed decides nothing" in printed.err
    found = json.loads(printed.out)
    assert [row["claim"] for row in found["rows"]] == ["placed is better than plain in accuracy."]
    assert "look 2 of 2" in found["notes"][0]
    assert found["scale"] == "own"
    assert len(read_records(results).found) == 2 + 4
    page = (results / "report" / "claims.html").read_text()
    assert "placed is better than plain" in page
    assert '<span class="tag">own</span>' in page
    findings = results / "findings" / "mine.json"  # as an earlier version called its size
    findings.write_text(findings.read_text().replace('"own"', '"mini"'))
    assert main([*asked, "--judge", "--seeds", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main([*asked, "--judge", "--seeds", "3"]) == 2
    assert "`seeds` must be that of a look of 'mine', 1, 2, got 3" in capsys.readouterr().err
    assert main(["protocol", "check", str(path), "--out", str(results)]) == 0


def test_runs_that_lack_their_data_are_told_and_are_no_interruption(cache, tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text(OWN.replace("[listops-mini]", "[listops-mini, text-mini]"))
    asked = ["reproduce", str(path), "--out", str(tmp_path / "out"), "--data", str(tmp_path)]
    assert main([*asked, "--prepared", str(cache / "depthpde" / "data")]) == 1
    printed = capsys.readouterr().err
    assert "1 wait for their data" in printed
    assert "not judged: runs failed or wait; the same command goes on" in printed
    assert "interrupted" not in printed
    assert main([*asked, "--judge"]) == 2
    assert f"depthpde sweep {path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "output"),
    [
        (["--scale", "full"], "`--scale` must be left out for a grid of your own, got 'full'"),
        (["--tasks", "text"], r"`--tasks` must be left out for a grid of your own, got ['text']"),
        ([], "'mine' must have a protocol to be judged, got none"),
    ],
)
def test_a_grid_of_ones_own_is_refused_where_it_says_nothing(extra, output, tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text(OWN if extra else OWN.split("study:")[0])
    assert main(["reproduce", str(path), *extra, "--out", str(tmp_path / "none")]) == 2
    assert output in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["placment"], "did you mean 'placement'"),
        (["placement", "--scale", "small"], "`scale` must be one of quick, mini, full"),
        (["noise", "--scale", "full"], "`--scale` must be left out for noise, got 'full'"),
        (["placement", "--seeds", "0"], "`--seeds` must be at least 1, got 0"),
        (["placement", "--tasks", "nothing"], "got 'nothing'"),
        (["efficiency", "--tasks", "text-mini"], "`--tasks` must be left out for efficiency"),
        (["efficiency", "--device", "cuda"], "`--device` must be left out for efficiency"),
        (["efficiency", "--judge", "--seeds", "3"], "`--seeds` must be left out to judge"),
        (["stabilization", "--tasks", "text"], "`--tasks` must be left out for stabilization"),
        (["placement", "--judge"], "must hold runs of 'placement' at this scale, got none"),
    ],
)
def test_wrong_words_are_answered(words, output, capsys, tmp_path):
    assert main(["reproduce", *words, "--out", str(tmp_path / "none")]) == 2
    assert output in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_findings_that_are_not_there_are_told(tmp_path, capsys):
    assert main(["reproduce", "efficiency", "--judge", "--out", str(tmp_path)]) == 2
    assert "efficiency.json must hold what was measured; measure" in capsys.readouterr().err
