"""Runs as SLURM's job arrays: submitit's own local jobs, and a cluster of one machine in bash."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace

import pytest

from depthpde.records.record import State, read_record, read_records
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.sweep import sweep

pytest.importorskip("submitit")

from depthpde.sweeps.clusters.slurm import Slurm

SBATCH = """#!/bin/bash
# Runs every task of an array at once on this machine, as SLURM would on its nodes.
cp "$1" "$BOOK/script"
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$1")
for i in $(seq 0 "$last"); do
  SLURM_JOB_ID=7$i SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$i SLURM_NTASKS=1 SLURM_PROCID=0 \\
  SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_LOCALID=0 setsid bash "$1" \\
    >"$BOOK/log$i" 2>&1 </dev/null & echo $! >>"$BOOK/pids"
done
echo "Submitted batch job 7"
"""
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do case $1 in --output | --error) shift 2 ;; *) shift ;; esac; done
exec "$@"
"""
SCANCEL = """#!/bin/bash
echo "$@" >>"$BOOK/cancelled"
for p in $(cat "$BOOK/pids"); do kill -TERM -- "-$p"; done; true
"""


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Put SLURM's commands in the path, and return the folder where they note what they do."""
    commands, book = tmp_path / "commands", tmp_path / "book"
    for folder in (commands, book):
        folder.mkdir()
    output = {"sbatch": SBATCH, "srun": SRUN, "scancel": SCANCEL, "sacct": "#!/bin/bash\n"}
    for name, text in output.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("BOOK", str(book))
    return book


def seeds(run, count):
    return [replace(run, seed=seed) for seed in range(count)]


def test_an_array_computes_every_run_with_the_resources_asked_for(run, prepared, tmp_path, book):
    runs = seeds(run, 2)
    results = tmp_path / "results"
    place = Slurm(Folders(results, None, prepared), "short", slots=2, minutes=30, cpus=1, gpus=1)
    assert sweep(runs, place, results).recorded == 2, (book / "log0").read_text()
    script = (book / "script").read_text()
    for line in (
        "--array=0-1%2", "--partition=short", "--time=30", "--cpus-per-task=1",
        "--gpus-per-node=1", "--job-name=depthpde",
    ):  # fmt: skip
        assert f"#SBATCH {line}\n" in script
    records = read_records(results).found
    assert {each.environment["threads"] for each in records.values()} == {1}


def test_cancelled_jobs_save(run, prepared, tmp_path, book):
    results = tmp_path / "results"
    long = replace(run, training=replace(run.training, updates=10**6, evaluate_every=10**6))
    folders = [results / "runs" / each.id for each in seeds(long, 2)]
    end = time.monotonic() + 300
    asked = []

    def callback(ended):
        assert time.monotonic() < end, (book / "log0").read_text()
        if not asked and all((each / "metrics.jsonl").exists() for each in folders):
            asked.append(os.kill(os.getpid(), signal.SIGINT))

    place = Slurm(Folders(results, None, prepared))
    outcome = sweep(seeds(long, 2), place, results, callback=callback)
    assert outcome.exit_code == 130
    assert (book / "cancelled").read_text().split() == ["7_0", "7_1"]
    while any(read_record(each).state is not State.INTERRUPTED for each in folders):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert all(list((each / "checkpoints").glob("update-*.json")) for each in folders)


@pytest.mark.drill
def test_a_job_that_is_killed_is_submitted_again(run, prepared, tmp_path, tally):
    longer = {"updates": 600, "evaluate_every": 600, "checkpoint_every": 20}
    long = replace(run, training=replace(run.training, **longer))
    folder = tmp_path / "runs" / long.id
    killed = []

    def callback(ended):
        if not killed and (folder / "metrics.jsonl").exists():
            status = read_record(folder).status
            assert "pid" in status, "killed while it runs, not after"
            killed.append(status["pid"])
            os.kill(killed[0], signal.SIGKILL)

    place = Slurm(Folders(tmp_path, None, prepared), cluster="local")
    outcome = sweep([long], place, tmp_path, callback=callback)
    assert killed
    assert (outcome.recorded, outcome.failed) == (1, {})
    assert read_record(folder).status["attempts"] == 2
    tally("A job of submitit killed", 1, "submitted again, and went on")


def test_where_there_is_no_slurm_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="`--slurm` must be called where jobs can be submitted"):
        Slurm(Folders(tmp_path))


def test_without_submitit_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ValueError, match=r"needs submitit: pip install 'depthpde\[slurm\]'"):
        Slurm(Folders(tmp_path))
