"""Runs on a real Ray cluster of two nodes, of which workers and a whole node are killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.records.record import FINISHED, State, read_record, read_records
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.sweep import sweep

ray = pytest.importorskip("ray")

from depthpde.sweeps.clusters.ray_cluster import RayCluster  # noqa: E402
from depthpde.sweeps.clusters.ray_connection import connect  # noqa: E402


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Start a head and a second node with one core each; each worker has one thread."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        room = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=room)
        second = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
        yield cluster, second
        cluster.shutdown()


def statuses(results):
    return {each.id: each for each in read_records(results).found.values()}


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Disaster:
    """Kills the first worker seen at work, then the second node while it is at work."""

    def __init__(self, results, cluster, node):
        self.results, self.cluster, self.node = results, cluster, node
        (raylet,) = node.all_processes["raylet"]
        self.raylet = raylet.process.pid
        self.killed: list[str] = []
        self.seen: list[str] = []

    def __call__(self, ended):
        if ended is not None:
            self.seen.append(ended.end.value)
        if len(self.killed) == 2:
            return
        for record in statuses(self.results).values():
            if record.state is not State.RUNNING or not record.points():
                continue
            pid = record.status["pid"]
            if not Path(f"/proc/{pid}").exists():
                continue
            if not self.killed:
                os.kill(pid, signal.SIGKILL)
                self.killed.append("worker")
                return
            if parent(pid) == self.raylet:
                self.cluster.remove_node(self.node, allow_graceful=False)
                self.killed.append("node")
                return


@pytest.mark.drill
def test_every_run_is_recorded_once_though_a_worker_and_a_node_are_killed(
    nodes, run, prepared, tmp_path, tally
):
    cluster, second = nodes
    training = replace(run.training, updates=200, evaluate_every=200, checkpoint_every=10)
    runs = [replace(run, seed=seed, training=training) for seed in range(6)]
    disaster = Disaster(tmp_path, cluster, second)
    place = RayCluster(Folders(tmp_path, None, prepared), cluster.address)
    outcome = sweep(runs, place, tmp_path, callback=disaster)
    assert disaster.killed == ["worker", "node"]
    assert (outcome.recorded, outcome.failed) == (6, {})
    seen = Counter(disaster.seen)
    assert seen["recorded"] == 6
    assert seen["died"] in (1, 2)  # what the node had may have ended a moment before it
    records = statuses(tmp_path)
    assert set(records) == {each.id for each in runs}
    assert {each.state for each in records.values()} <= FINISHED
    assert sum(each.status["attempts"] for each in records.values()) == 6 + seen["died"]
    assert {each.environment["threads"] for each in records.values()} == {1}
    tally("Ray, two nodes: a worker killed, then a node", 2, "every run recorded once")


@pytest.mark.drill
def test_a_record_travels_where_no_folder_is_shared(nodes, run, prepared, tmp_path, monkeypatch):
    cluster, _ = nodes
    monkeypatch.chdir(tmp_path)
    results = Path("/proc/self/cwd/results")  # another folder for every process
    results.mkdir()
    broken = replace(run, recipe=99)
    place = RayCluster(Folders(results, None, prepared), cluster.address)
    outcome = sweep([run, broken], place, results)
    assert outcome.recorded == 1
    assert "`recipe` must be" in outcome.failed[broken.id]
    record = read_record(tmp_path / "results" / "runs" / run.id)
    assert record.state is State.DONE
    assert len(record.predictions()) == 48
    assert not (record.folder / ".lock").exists()  # it was never computed here
    assert read_record(tmp_path / "results" / "runs" / broken.id).state is State.FAILED


@pytest.mark.drill
def test_late_news_of_a_run_that_has_ended_changes_nothing(nodes, run, prepared, tmp_path):
    cluster, _ = nodes
    place = RayCluster(Folders(tmp_path, None, prepared), cluster.address)
    ended = tmp_path / "runs" / ("0" * 16) / "status.json"
    ended.parent.mkdir(parents=True)
    ended.write_text('{"state": "failed"}')
    stale = {"status.json": b'{"state": "running"}'}
    place.ray.get(place._live.put.remote(ended.parent.name, stale))
    place.start(run)
    while not place.wait(1.0):
        pass
    place.close()
    assert ended.read_text() == '{"state": "failed"}'


@pytest.mark.drill
def test_stop_makes_runs_on_the_cluster_save(nodes, run, prepared, tmp_path):
    cluster, _ = nodes
    long = replace(run, training=replace(run.training, updates=10**6, evaluate_every=10**6))
    place = RayCluster(Folders(tmp_path, None, prepared), cluster.address)
    asked = []

    def callback(ended):
        if not asked and (tmp_path / "runs" / long.id / "metrics.jsonl").exists():
            asked.append(os.kill(os.getpid(), signal.SIGINT))

    outcome = sweep([long, replace(long, seed=1)], place, tmp_path, callback=callback)
    assert outcome.exit_code == 130
    record = read_record(tmp_path / "runs" / long.id)
    assert record.state is State.INTERRUPTED
    assert list((record.folder / "checkpoints").glob("update-*.json"))


HEADLESS = """
import sys
from pathlib import Path
from depthpde.runs.run import RunConfig
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.clusters.ray_cluster import RayCluster
from depthpde.sweeps.sweep import sweep
import json
run, results = RunConfig.from_dict(json.loads(sys.argv[1])), Path(sys.argv[2])
place = RayCluster(Folders(results, None, Path(sys.argv[3])), sys.argv[4])
print("begun", flush=True)
try:
    sweep([run], place, results)
except ConnectionError as error:
    sys.exit(f"error: {error}")
"""


@pytest.mark.drill
@pytest.mark.parametrize("when", ["before the first run", "while a run is computed"])
def test_a_dead_head_ends_the_sweep_with_a_sentence(
    run, prepared, tmp_path, monkeypatch, when, tally
):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    long = replace(run, training=replace(run.training, updates=10**6, evaluate_every=10**6))
    words = [json.dumps(long.to_dict()), str(tmp_path), str(prepared), cluster.address]
    child = subprocess.Popen(
        [sys.executable, "-c", HEADLESS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert child.stdout.readline().strip() == "begun"
        end = time.monotonic() + 300
        while "while" in when and not (tmp_path / "runs" / long.id / "metrics.jsonl").exists():
            assert time.monotonic() < end
            time.sleep(0.1)
        (head,) = cluster.head_node.all_processes["gcs_server"]
        os.kill(head.process.pid, signal.SIGKILL)
        _, output = child.communicate(timeout=300)
    finally:
        child.kill()
        cluster.shutdown()
    assert child.returncode == 1, output
    (sentence,) = (line for line in output.splitlines() if line.startswith("error: "))
    assert "has not answered for 40 s" in sentence
    assert "then the same command, which goes on" in sentence
    assert "The program will terminate" not in output
    tally("Ray: the head killed", 1, "one sentence, exit 1")


def test_an_address_that_refuses_or_says_nothing_is_told_within_seconds():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        for listening in (False, True):
            if listening:
                silent.listen()
            began = time.monotonic()
            with pytest.raises(ConnectionError, match="`--ray` must be a cluster that answers"):
                connect(f"127.0.0.1:{port}")
            assert time.monotonic() - began < 45, "Ray itself waits minutes"


HEAD = """
from ray.cluster_utils import Cluster
room = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=room)
print(cluster.address, flush=True)
input()
cluster.shutdown()
"""
JOIN = """
import sys
from depthpde.sweeps.clusters.ray_connection import connect
try:
    print(connect(sys.argv[1]).cluster_resources()["CPU"])
except ConnectionError as error:
    sys.exit(f"error: {error}")
"""


@pytest.mark.drill
def test_a_cluster_that_asks_for_a_token_is_joined_with_it_and_named_without(tmp_path):
    plain = {name: each for name, each in os.environ.items() if not name.startswith("RAY_")}
    plain |= {"HOME": str(tmp_path), "RAY_USAGE_STATS_ENABLED": "0"}
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "5" * 64}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HEAD], env=plain | token, **pipes) as head:
        address = head.stdout.readline().strip()
        with tempfile.TemporaryDirectory(prefix="ray") as here:  # as `ray start` notes its head
            (Path(here) / "ray").mkdir()
            (Path(here) / "ray" / "ray_current_cluster").write_text(address)
            found = {"RAY_TMPDIR": here}
            (tmp_path / "token").write_text("5" * 64)
            own = {"RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}
            tried = {
                (where, kind): subprocess.run(
                    [sys.executable, "-c", JOIN, where],
                    env=plain | more, capture_output=True, text=True, timeout=120,
                )
                for where, more, kind in (
                    (address, {}, "without"), (address, token, "with"),
                    ("auto", found, "without"), ("auto", found | own, "with"),
                )
            }  # fmt: skip
        head.communicate("\n", timeout=60)
    for where in (address, "auto"):
        assert tried[where, "with"].stdout == "1.0\n", tried[where, "with"].stderr
        answer = tried[where, "without"]
        assert answer.returncode == 1
        (sentence,) = (line for line in answer.stderr.splitlines() if line.startswith("error: "))
        assert "asks for a token" in sentence
        assert "RAY_AUTH_MODE=token" in sentence


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"`--ray` must be auto or HOST:PORT .* got 'cluster'"):
        connect("cluster")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"needs Ray: pip install 'depthpde\[ray\]'"):
        connect("auto")
