"""One grid by every executor: records are the same to the byte, tasks of one's own included.

In this process, in a pool, on a Ray cluster that was started in another folder, and by a real
SLURM; each as a person would call it, in the folder where the module and the arrays lie.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from depthpde.records.record import read_records
from depthpde.records.verification import verify
from drills.same_records import contents, difference
from sweeps.clusters.slurm_cluster import absent, one_node

ray = pytest.importorskip("ray")
pytest.importorskip("submitit")

GRID = """name: everywhere
question: Does it matter who computes?
tasks: [my_waves:make_task, ramps]
seeds: 1
model: {dim: 8, blocks: 1, heads: 2}
training: {updates: 30, warmup: 4, batch_size: 8, evaluate_every: 15, checkpoint_every: 10}
variants:
  baseline: {}
  after embedding: {model: {positions: [after_embedding]}}
"""
MODULE = """import numpy as np
import depthpde as dp


def make_task():
    y = np.arange(120) % 2
    x = np.random.default_rng(0).normal(size=(120, 16, 2)) + y[:, None, None]
    return dp.Task.from_arrays("waves", x, y)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a grid, a module and arrays; nothing of it is on a path of Python."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "here"
    (place / "ramps").mkdir(parents=True)
    (place / "grid.yaml").write_text(GRID)
    (place / "my_waves.py").write_text(MODULE)
    y = np.arange(90) % 3
    np.save(place / "ramps" / "x.npy", np.arange(12) * y[:, None] + np.arange(90)[:, None] % 7)
    np.save(place / "ramps" / "y.npy", y)
    return place


def compute(here, out, *words):
    """Sweep the grid by the command line, and return what the records hold."""
    command = [sys.executable, "-m", "depthpde", "sweep", "grid.yaml", "--out", out, *words]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    assert verify(here / out).broken == ()
    return {name: each.folder for name, each in read_records(here / out).found.items()}


@pytest.fixture
def cluster(monkeypatch):
    """A head of one core, whose workers start in the folder of the tests."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    room = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    started = Cluster(initialize_head=True, head_node_args=room)
    yield started
    started.shutdown()


@pytest.mark.drill
def test_one_grid_of_ones_own_tasks_is_the_same_to_the_byte_by_every_executor(
    here, cluster, tmp_path, tally
):
    if absent():
        pytest.skip(absent())
    first = compute(here, "in-process", "--workers", "0")
    assert len(first) == 4
    want = {name: contents(folder) for name, folder in first.items()}
    places = {"pool": ["--workers", "1"], "ray": ["--ray", cluster.address]}
    with one_node(tmp_path / "slurm"):
        for name, words in (places | {"slurm": ["--slurm"]}).items():
            found = compute(here, name, *words)
            assert found.keys() == want.keys()
            wrong = {run: difference(found[run], want[run]) for run in want}
            assert not any(wrong.values()), (name, wrong)
    held = "records byte-equal to the in-process ones"
    tally("A grid of own tasks (module, folder of arrays) by pool, Ray and a real SLURM", 12, held)
