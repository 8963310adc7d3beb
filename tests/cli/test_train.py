import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from depthpde.cli.main import main
from depthpde.cli.train import LIBRARIES
from depthpde.data.catalog import prepare
from depthpde.data.tasks import TASKS
from depthpde.records.record import read_records
from depthpde.runs.tracking import TRACKERS

SMALL = {"train": 96, "validation": 32, "test": 48}
QUICK = [
    "train", "listops-mini", "--set", "model.dim=8", "--set", "training.batch_size=6",
    "--set", "training.evaluate_every=20", "--set", "training.log_every=10",
    "--set", "training.checkpoint_every=10",
]  # fmt: skip


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Prepare ListOps with few examples, and return the folder."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(replace(TASKS["listops-mini"], splits=SMALL), out=folder)
    return folder


@pytest.fixture
def command(tmp_path, prepared):
    """A run of 40 updates into a results folder of its own."""
    return [*QUICK, "--updates", "40", "--out", str(tmp_path), "--prepared", str(prepared)]


def start(command, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "depthpde.cli.main", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"}, **more,
    )  # fmt: skip


def only_record(results):
    (record,) = read_records(results).found.values()
    return record


def test_a_run_is_told_against_the_trivial_lines_and_a_finished_one_is_shown(
    command, tmp_path, capsys
):
    assert main([*command, "--position", "after_embedding", "--layer", "multiscale"]) == 0
    printed = capsys.readouterr()
    record = only_record(tmp_path)
    assert record.config["model"]["positions"] == ["after_embedding"]
    assert "update 40/40 · loss" in printed.err
    assert "tokens/s · 0:00 left · r 0." in printed.err
    accuracy = record.result["test"]["accuracy"]
    assert f"test       {accuracy:.1f} % ± " in printed.out
    assert f"majority {record.result['trivial']['majority']:.1f} %" in printed.out
    assert printed.out.splitlines()[-1] == f"record     {record.folder}"
    assert main([*command, "--position", "after_embedding", "--layer", "multiscale"]) == 0
    again = capsys.readouterr()
    assert "finished before, not trained again" in again.out
    assert again.err == ""
    assert again.out.splitlines()[1:] == printed.out.splitlines()[1:]


@pytest.mark.drill
def test_ctrl_c_saves_and_the_same_command_ends_with_the_same_weights(command, tmp_path, prepared):
    long = [*command, "--updates", "120"]
    with start(long) as running:
        for line in running.stderr:
            if line.startswith("update 30/"):
                running.send_signal(signal.SIGINT)
                break
        out, errors = running.communicate(timeout=300)
    assert running.returncode == 130, errors
    assert "saved; the same command goes on with it" in out
    halfway = only_record(tmp_path)
    assert 30 <= halfway.status["update"] < 120
    with start(long) as running:
        out, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    assert f"resumed at update {halfway.status['update']} of 120" in errors
    assert main([*long, "--out", str(tmp_path / "unbroken")]) == 0
    weights = [
        (only_record(each).folder / "model" / "model.safetensors").read_bytes()
        for each in (tmp_path, tmp_path / "unbroken")
    ]
    assert weights[0] == weights[1]


def test_what_is_printed_is_what_config_takes(tmp_path, capsys):
    words = ["train", "text-mini", "--position", "after_ffn", "--seed", "2", "--pretrain", "masked"]
    assert main([*words, "--set", "training.learning_rate=0.5", "--compile", "--print_config"]) == 0
    first = capsys.readouterr().out
    (tmp_path / "run.json").write_text(first)
    assert main(["train", "--config", str(tmp_path / "run.json"), "--print-config"]) == 0
    assert capsys.readouterr().out == first
    output = json.loads(first)["config"]
    assert (output["seed"], output["training"]["learning_rate"]) == (2, 0.5)
    assert output["training"]["compile"] is True
    assert output["pretraining"]["objective"] == "masked"
    assert list(tmp_path.iterdir()) == [tmp_path / "run.json"], "nothing was trained"


def test_a_layer_may_be_named_where_a_setting_places_it(capsys):
    words = ["train", "text-mini", "--set", "model.positions=after_ffn", "--layer", "multiscale"]
    assert main([*words, "--print_config"]) == 0
    output = json.loads(capsys.readouterr().out)["config"]["model"]
    assert (output["positions"], output["layer"]) == (["after_ffn"], "multiscale")


def test_json_is_one_object_and_nothing_else(command, tmp_path, capsys):
    assert main([*command, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["state"] == "done"
    assert output["result"] == only_record(tmp_path).result
    assert output["folder"] == str(only_record(tmp_path).folder)


def test_pretraining_is_a_stage_of_the_run(command, tmp_path, capsys):
    assert main([*command, "--pretrain", "causal", "--set", "pretraining.updates=20"]) == 0
    record = only_record(tmp_path)
    assert record.config["pretraining"]["updates"] == 20
    assert (record.folder / "pretraining.jsonl").read_text().count('"point"') == 2
    output = capsys.readouterr()
    assert "causal pretraining" in output.out
    stage, rest = output.err.split("training: 40 updates\n")
    assert "pretraining, causal: 20 updates\nupdate 10/20 · loss" in stage
    assert "update 10/40 · loss" in rest


@pytest.mark.drill
def test_ctrl_c_in_pretraining_says_where_it_stopped(command):
    with start([*command, "--pretrain", "masked", "--set", "pretraining.updates=4000"]) as running:
        for line in running.stderr:
            if "update 10/4000" in line:
                running.send_signal(signal.SIGINT)
                break
        output, _ = running.communicate(timeout=300)
    assert running.returncode == 130
    assert re.search(r"interrupted at pretraining, update \d+ of 4000, saved", output)


def test_the_doctor_watches_when_asked_and_changes_nothing(command, tmp_path, capsys):
    assert main([*command, "--doctor"]) == 0
    record = only_record(tmp_path)
    first, *_ = (record.folder / "doctor.jsonl").read_text().splitlines()
    assert json.loads(first)["update"] == 1
    assert "doctor: 1 look, every 200 updates, took" in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "alone")]) == 0
    alone = only_record(tmp_path / "alone")
    weights = [
        (each.folder / "model" / "model.safetensors").read_bytes() for each in (record, alone)
    ]
    assert weights[0] == weights[1]


@pytest.mark.drill
def test_curves_are_sent_to_tensorboard_when_asked(command, tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    with start([*command, "--track", "tensorboard", "--json"]) as running:
        out, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    folder = tmp_path / "tensorboard" / json.loads(out)["id"]
    assert [each.name.split(".")[2] for each in folder.iterdir()] == ["tfevents"]


def test_a_tracker_that_is_not_installed_is_refused(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "trackio", None)
    assert main([*command, "--track", "trackio"]) == 2
    output = capsys.readouterr().err
    assert "`--track trackio` needs trackio" in output
    assert "pip install 'depthpde[track]'" in output


def test_the_option_names_every_tracker():
    assert tuple(TRACKERS) == LIBRARIES


def test_a_divergence_is_told_as_a_result(command, capsys):
    assert main([*command, "--set", "training.loss_bound=0.01"]) == 0
    assert "diverged: loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "listops-mni"], "did you mean 'listops-mini'?"),
        (["train", "listops-mini", "--preset", "mimi"], "did you mean 'mini'?"),
        (["train", "listops-mini", "--position", "after_embeding"], "mean 'after_embedding'?"),
        (["train", "listops-mini", "--layer", "multiskale"], "did you mean 'multiscale'?"),
        (["train", "listops-mini", "--set", "training.lr=1"], "loss_bound, seed, got 'lr'\n"),
        (["train", "listops-mini", "--layer", "multiscale"], "nothing is placed; add --position a"),
        (["train", "listops-mini", "--set", "model.layer.bound=9"], "must lie in [1e-12, 0.5], go"),
        (["train", "listops-mini", "--pretrain", "mask"], "did you mean 'masked'?"),
        (["train", "listops-mini", "--protocol", "lra-2020"], "says nothing about listops-mini"),
        (["train", "listops-mini", "--device", "tpu9"], "`--device` must be cpu or cuda"),
        (["train"], "`task` must be named"),
        (["train", "--config", "none.json"], "none.json does not exist"),
    ],
)
def test_wrong_words_are_answered_in_one_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert len(printed.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [], "nothing was made"


@pytest.mark.skipif("__import__('torch').cuda.is_available()", reason="there is a GPU")
def test_a_device_that_is_not_here_is_refused(command, capsys):
    assert main([*command, "--device", "cuda"]) == 2
    assert "`--device` must be one that is here, got 'cuda'" in capsys.readouterr().err


def test_a_config_of_another_version_is_refused(tmp_path, capsys):
    (tmp_path / "old.json").write_text('{"format": 0, "config": {}}')
    assert main(["train", "--config", str(tmp_path / "old.json")]) == 2
    assert "must be of format 1, got 0: another version" in capsys.readouterr().err


def test_a_run_that_another_process_computes_is_left_to_it(command, tmp_path, capsys):
    assert main([*command, "--json"]) == 0
    folder = only_record(tmp_path).folder
    (folder / "result.json").unlink()
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert main(command) == 2
    assert "is being computed by another process; wait for it" in capsys.readouterr().err


def test_a_results_folder_that_cannot_be_made_is_refused(command, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main([*command, "--out", str(tmp_path / "file" / "results")]) == 2
    assert "`--out` must be a folder that can be written" in capsys.readouterr().err


@pytest.mark.drill
def test_a_full_disk_is_said_and_with_room_again_the_same_command_goes_on(command, tmp_path):
    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    with start(command, preexec_fn=fill) as running:
        _, errors = running.communicate(timeout=300)
    assert running.returncode == 2
    assert "a checkpoint cannot be written (File too large); free the disk" in errors
    assert only_record(tmp_path).state == "failed"
    with start(command) as running:
        _, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    assert only_record(tmp_path).state == "done"
