"""``depthpde sweep`` as a person uses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from depthpde.cli.experiments import sweep
from depthpde.cli.main import main, parser
from depthpde.data.catalog import prepare
from depthpde.data.tasks import TASKS
from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.record import read_grids, read_records
from depthpde.sweeps.scale import Scale
from sweeps.test_grid_file import STUDY, UNDER, write

SMALL = {"train": 96, "validation": 32, "test": 48}
GRID = {
    "name": "tiny",
    "question": "Does it run?",
    "tasks": ["listops-mini"],
    "seeds": 2,
    "model": {"dim": 8, "blocks": 1},
    "training": {"updates": 4, "warmup": 1, "batch_size": 8, "evaluate_every": 4, "log_every": 2},
    "variants": {"baseline": {}, "after embedding": {"model": {"positions": ["after_embedding"]}}},
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Prepare ListOps with few examples, and return the folder."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(replace(TASKS["listops-mini"], splits=SMALL), out=folder)
    return folder


@pytest.fixture
def command(tmp_path, prepared):
    """Return the command of a tiny grid of two variants and two seeds."""
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(GRID))
    return ["sweep", str(file), "--out", str(tmp_path / "out"), "--prepared", str(prepared)]


def test_a_grid_of_ones_own_is_computed_shown_and_not_computed_again(command, tmp_path, capsys):
    assert main([*command, "--workers", "0"]) == 0
    printed = capsys.readouterr()
    head, names, *rows = printed.out.splitlines()
    assert head == "tiny · 4 of 4 recorded"
    assert names.split() == ["listops-mini", "seed", "0", "seed", "1"]
    assert [row[:15].strip() for row in rows] == ["baseline", "after embedding"]
    assert "4 computed, 0 were there, 0 failed" in printed.err
    assert printed.err.count(": done ") == 4  # one quiet line for each run
    assert main([*command, "--workers", "0", "--json"]) == 0
    printed = capsys.readouterr()
    output = json.loads(printed.out)
    assert (output["finished"], output["states"], output["interrupted"]) == (4, {"done": 4}, False)
    assert ": done " not in printed.err

    assert main(["sweep", "status", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("tiny · 4 of 4 recorded\nlistops-mini")
    assert main(["sweep", "status", str(tmp_path / "out"), "--json"]) == 0
    (grid,) = json.loads(capsys.readouterr().out)["grids"]
    assert grid["name"] == "tiny"
    assert {cell["state"] for cell in grid["cells"]} == {"done"}


def test_the_status_names_a_grid_that_cannot_be_read(command, tmp_path, capsys):
    assert main([*command, "--workers", "0", "--seeds", "1"]) == 0
    bad = tmp_path / "out" / "grids" / "bad.json"
    bad.write_text("{half")
    capsys.readouterr()
    assert main(["sweep", "status", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("tiny · 2 of 2 recorded\n")
    assert printed.err.startswith(f"unread: {bad} must be JSON, but ")
    assert main(["sweep", "status", str(tmp_path / "out"), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["unread"]) == [str(bad)]
    (tmp_path / "out" / "grids" / "tiny.json").unlink()
    assert main(["sweep", "status", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"depthpde sweep: {bad} must be JSON, but ")
    assert "move it away and the same sweep writes it again" in printed


def test_ctrl_c_saves_and_exits_with_130(command, tmp_path):
    grid = GRID | {"training": {"updates": 10**5, "warmup": 1, "batch_size": 8}, "seeds": 1}
    (tmp_path / "tiny.json").write_text(json.dumps(grid))
    child = subprocess.Popen(
        [sys.executable, "-m", "depthpde.cli.main", *command, "--workers", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    end = time.monotonic() + 300
    while not list((tmp_path / "out").glob("runs/*/metrics.jsonl")):
        assert time.monotonic() < end
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 130
    assert "interrupted; saved: the same command goes on" in err
    assert "paused" in out
    (record,) = read_records(tmp_path / "out").found.values()
    assert record.state == "interrupted"


def test_a_run_that_failed_is_told_and_exits_with_1_until_it_is_tried_again(
    command, tmp_path, capsys
):
    assert main([*command, "--workers", "0", "--seeds", "1"]) == 0
    run = read_grids(tmp_path / "out").by_name["tiny"].cells[1].run
    folder = tmp_path / "out" / "runs" / run
    (folder / "result.json").unlink()
    status = {"state": "failed", "error": "OSError: the disk is full", "attempts": 1}
    (folder / "status.json").write_text(json.dumps(status))
    capsys.readouterr()
    assert main([*command, "--workers", "0", "--seeds", "1"]) == 1
    printed = capsys.readouterr()
    assert (
        "failed: listops-mini · after embedding · seed 0: OSError: the disk is full" in printed.out
    )
    assert "--retry-failed" in printed.err
    assert main([*command, "--workers", "0", "--seeds", "1", "--retry-failed"]) == 0


def test_what_lacks_its_data_is_told_once_and_waits_without_being_a_failure(
    tmp_path, prepared, capsys
):
    file, empty = tmp_path / "two.json", tmp_path / "empty"
    empty.mkdir()
    file.write_text(json.dumps(GRID | {"tasks": ["listops-mini", "text-mini"]}))
    words = ["--out", str(tmp_path / "out"), "--data", str(empty), "--workers", "0"]
    line = ["sweep", str(file), *words]
    assert main([*line, "--prepared", str(prepared)]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("without text-mini, which cannot be prepared: ") == 1
    assert "4 computed, 0 were there, 0 failed" in printed.err
    assert "4 wait for their data: the same command goes on" in printed.err
    assert {record.task for record in read_records(tmp_path / "out").found.values()} == {
        "listops-mini"
    }
    assert main([*line, "--prepared", str(prepared), "--json"]) == 1


def test_without_any_data_nothing_is_begun_and_the_reason_is_the_answer(tmp_path, capsys):
    file, empty = tmp_path / "text.json", tmp_path / "empty"
    empty.mkdir()
    file.write_text(json.dumps(GRID | {"tasks": ["text-mini"]}))
    words = ["--out", str(tmp_path / "out"), "--data", str(empty), "--prepared", str(empty)]
    assert main(["sweep", str(file), *words, "--workers", "0"]) == 2
    assert capsys.readouterr().err.count("depthpde sweep: text-mini needs the IMDb reviews") == 1
    assert not read_records(tmp_path / "out").found


def test_a_part_of_a_protocols_tasks_is_refused_before_anything_is_written(tmp_path, capsys):
    path = write(tmp_path, tasks=["listops-mini", "text-mini"], study=STUDY, **UNDER)
    words = ["--tasks", "text-mini", "--out", str(tmp_path / "out")]
    assert main(["sweep", str(path), *words]) == 2
    assert "`tasks` must be left out beside `study`, got text-mini" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_does_not_answer_is_told_before_anything_is_written(tmp_path, capsys):
    words = ["--tasks", "listops-mini", "--seeds", "2", "--out", str(tmp_path / "out")]
    assert main(["sweep", "placement", "--scale", "quick", *words, "--ray", "127.0.0.1:1"]) == 2
    assert "`--ray` must be a cluster that answers, got 127.0.0.1:1" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_experiment_by_name_writes_its_grid_before_it_computes(tmp_path, capsys):
    """There is no folder of data: nothing is computed, and that is said at once."""
    (tmp_path / "file").write_text("")
    words = ["--tasks", "listops-mini", "--seeds", "2", "--out", str(tmp_path)]
    bad = ["--prepared", str(tmp_path / "file"), "--workers", "0"]
    assert main(["sweep", "placement", "--scale", "quick", *words, *bad]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err
    grid = read_grids(tmp_path).by_name["placement"]
    assert grid.baseline == "baseline"
    assert {cell.task for cell in grid.cells} == {"listops-mini"}
    assert main(["sweep", "status", str(tmp_path)]) == 0
    assert f"0 of {len({cell.run for cell in grid.cells})} recorded" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", [n for n, each in EXPERIMENTS.items() if each.fixed_tasks and each.variants]
)
def test_the_runs_of_paper_b_are_computed_wherever_others_are(name):
    for words, seeds in ((["--seeds", "2"], 2), ([], None)):
        asked = sweep._plan(parser().parse_args(["sweep", name, "--scale", "quick", *words]))
        wanted = EXPERIMENTS[name].plan(Scale.QUICK, seeds=seeds)
        assert asked.name == name
        assert [run.id for run in asked.runs] == [run.id for run in wanted.runs]


def test_a_smaller_sweep_of_another_scale_is_refused_before_it_computes(command, tmp_path, capsys):
    assert main([*command, "--workers", "0"]) == 0
    before = read_grids(tmp_path / "out").by_name["tiny"]
    assert main([*command, "--workers", "0", "--seeds", "1"]) == 0
    assert read_grids(tmp_path / "out").by_name["tiny"] == before
    training = GRID["training"] | {"updates": 5}
    (tmp_path / "tiny.json").write_text(json.dumps(GRID | {"training": training, "seeds": 1}))
    capsys.readouterr()
    assert main([*command, "--workers", "0"]) == 2
    assert "'tiny' must go on with the grid in" in capsys.readouterr().err
    assert read_grids(tmp_path / "out").by_name["tiny"] == before
    assert len(read_records(tmp_path / "out").found) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stabilization", "--tasks", "text"], "`--tasks` must be left out for stabilization"),
        (["efficiency"], "`NAME` must be an experiment with runs, got efficiency"),
        (["placment"], "`NAME` must be one of .* did you mean 'placement'"),
        (["placement", "--scale", "huge"], "`--scale` must be one of quick, mini, full"),
        (["noise", "--scale", "full"], "`--scale` must be left out for noise, got 'full'"),
        (["placement", "--seeds", "0"], "`--seeds` must be at least 1, got 0"),
        (["placement", "--tasks", "nothing"], "got 'nothing'"),
        (["placement", "--workers", "-1"], r"`--workers` must lie in \[0, 4096\], got -1"),
        (["placement", "--max-parallel", "0"], "`--max-parallel` must be at least 1"),
        (["placement", "--nice", "20"], r"`--nice` must lie in \[0, 19\], got 20"),
        (["placement", "--ray", "--slurm"], "`--ray` must stand alone, got --slurm too"),
        (["placement", "results"], "RESULTS must follow `status` only; use --out results"),
        (["status", "nowhere"], "nowhere must hold a sweep's grids, got none"),
        (["nowhere.json"], "nowhere.json"),
        (["mine.yaml", "--scale", "full"], "`--scale` must be left out .*, got 'full'; the file"),
    ],
)
def test_wrong_words_are_answered(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, OSError), match=message):
        main(["sweep", *words, "--debug"])
    assert not list(tmp_path.iterdir())


def test_a_results_folder_that_cannot_be_written_is_named(command, tmp_path, capsys):
    (tmp_path / "out").write_text("a file")
    assert main([*command, "--workers", "0"]) == 2
    assert "results cannot be written" in capsys.readouterr().err
