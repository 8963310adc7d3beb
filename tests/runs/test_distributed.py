import json
import os
import signal
import subprocess
import sys

import pytest
import torch

from depthpde.cli.main import main
from depthpde.records.record import read_records
from depthpde.runs.distributed import joined, own_device

UPDATES = 160
RUN = [
    "train", "listops-mini", "--position", "after_embedding", "--updates", str(UPDATES),
    "--pretrain", "masked", "--set", "pretraining.updates=5", "--set", "model.dim=8",
    "--set", "training.batch_size=6", "--set", "training.log_every=1",
    "--set", "training.evaluate_every=60", "--set", "training.checkpoint_every=50",
]  # fmt: skip


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, prepared):
    """Two processes started by torchrun, stopped on their way: their results folder."""
    results = tmp_path_factory.mktemp("together")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "-m", "depthpde.cli.main", *RUN, "--out", results, "--prepared", prepared,
    ]  # fmt: skip
    lines = []
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    ) as started:
        for line in started.stderr:
            lines.append(line)
            if line.startswith("update 60/"):
                started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=300) != 0
    assert any(line.startswith("update 60/") for line in lines), "".join(lines)
    return results


def losses(results):
    (record,) = read_records(results).found.values()
    return record, [point["loss"] for point in record.points()]


@pytest.mark.drill
def test_two_processes_stopped_and_one_that_goes_on_give_the_losses_of_one(
    stopped, prepared, tmp_path, capsys
):
    record, half = losses(stopped)
    assert record.state == "interrupted"
    assert 60 <= len(half) < UPDATES
    for results in (stopped, tmp_path):
        assert main([*RUN, "--out", str(results), "--prepared", str(prepared)]) == 0
    assert f"resumed at update {record.status['update']} of {UPDATES}" in capsys.readouterr().err
    (both, found), (alone, wanted) = losses(stopped), losses(tmp_path)
    assert both.id == alone.id
    assert len(found) == UPDATES
    # The processes add in another order: float32 rounding, grown over the updates.
    assert found[:60] == pytest.approx(wanted[:60], rel=1e-3)
    assert found == pytest.approx(wanted, rel=0.05)
    assert json.loads((both.folder / "result.json").read_text())["tokens"] == alone.result["tokens"]


def test_a_finished_run_is_shown_by_all_without_training(stopped, prepared, capsys):
    assert main([*RUN, "--out", str(stopped), "--prepared", str(prepared), "--json"]) == 0
    capsys.readouterr()
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            "-m", "depthpde.cli.main", *RUN, "--out", stopped, "--prepared", prepared,
        ],
        capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "finished before, not trained again" in done.stdout
    assert "update 1/" not in done.stderr


@pytest.fixture
def second_of_two(monkeypatch):
    """The second of two processes on a machine with two GPUs, as far as torch knows."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


def test_every_process_has_a_gpu_of_its_own(second_of_two, monkeypatch):
    assert own_device("cuda") == "cuda:1"
    assert own_device("cpu") == "cpu"
    chosen = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.distributed, "init_process_group", chosen.append)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)
    with joined("cuda:1"):
        assert chosen == ["cuda:1", "nccl"]
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert own_device("cuda") == "cuda"
    assert own_device("cuda:1") == "cuda:1"


def test_refuses_processes_that_share_a_gpu(second_of_two, monkeypatch):
    with pytest.raises(ValueError, match="`device` must be 'cuda' for several processes, got 'cud"):
        own_device("cuda:1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="must have a GPU for every process, got 1 for process 2"):
        own_device("cuda")
