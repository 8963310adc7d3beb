"""Ray on two hosts without a shared folder: a raylet killed, the cable cut, the head killed."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.records.verification import verify
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.pool import Pool
from depthpde.sweeps.sweep import sweep
from drills.ray_hosts import Hosts, absent
from drills.same_records import contents, difference
from runs.conftest import small_run

pytest.importorskip("ray")

CUT = 30
UPDATES = 1500
RUNS = 3


@pytest.fixture(scope="module")
def place():
    """Make folders of short names: Ray's sockets have 107 bytes, and pytest's workers take 40."""
    if absent():
        pytest.skip(absent())
    with tempfile.TemporaryDirectory(prefix="hosts", ignore_cleanup_errors=True) as folder:

        def made(name):
            (Path(folder) / name).mkdir()
            return Path(folder) / name

        yield made


@pytest.fixture(scope="module")
def runs():
    longer = {"updates": UPDATES, "evaluate_every": UPDATES // 3, "checkpoint_every": 20}
    base = small_run()
    training = replace(base.training, **longer)
    return [replace(base, seed=seed, training=training) for seed in range(RUNS)]


@pytest.fixture(scope="module")
def pool(place, runs, prepared):
    """Compute the same runs by the pool of this machine."""
    results = place("pool")
    assert sweep(runs, Pool(Folders(results, None, prepared), 1), results).recorded == RUNS
    return results


def check_same(results, runs, pool):
    """Compare every file of every run byte by byte with the pool's; of the result all but time."""
    assert verify(results).broken == ()
    for run in runs:
        want = contents(pool / "runs" / run.id)
        assert len(want) >= 6
        assert difference(results / "runs" / run.id, want) == "", run.id


def until(holds, seconds=300):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


def advanced(hosts, by=40):
    """Tell whether host b computes a run and has made so many updates."""
    return any(made >= by for made in hosts.begun_on("b").values())


def no_leftovers(hosts):
    """Ray's scratch folder on host b holds nothing of the runs whose records have arrived."""
    assert not list((hosts.place / "b" / "cache").glob("**/scratch/*/runs/*"))


def finish(sweeping, runs):
    out, err = sweeping.communicate(timeout=400)
    assert sweeping.returncode == 0, err[-3000:]
    assert json.loads(out.strip().splitlines()[-1]) == {"recorded": len(runs), "failed": {}}


@pytest.mark.drill
def test_a_raylet_that_is_killed_costs_nothing_but_time(place, runs, prepared, pool, tally):
    with Hosts(place("raylet")) as hosts:
        hosts.start_head()
        hosts.start_node()
        sweeping = hosts.sweep(runs, prepared)
        until(lambda: sweeping.poll() is not None or advanced(hosts))
        assert sweeping.poll() is None, sweeping.communicate()[1][-3000:]
        hosts.kill("b", "raylet")
        hosts.end("b")
        hosts.start_node()
        finish(sweeping, runs)
        no_leftovers(hosts)
        check_same(hosts.results, runs, pool)
    tally("Ray, two hosts: a raylet killed", 1, "records byte-equal to the pool's")


@pytest.mark.drill
def test_a_cable_cut_for_half_a_minute_loses_no_record(place, runs, prepared, pool, tally):
    with Hosts(place("cable")) as hosts:
        hosts.start_head()
        hosts.start_node()
        sweeping = hosts.sweep(runs, prepared)
        until(lambda: sweeping.poll() is not None or advanced(hosts))
        assert sweeping.poll() is None, sweeping.communicate()[1][-3000:]
        hosts.cut(CUT)
        time.sleep(5)
        if not hosts.pids("b", "raylet"):  # declared dead, it ends by itself: start it again
            hosts.end("b")
            hosts.start_node()
        finish(sweeping, runs)
        no_leftovers(hosts)
        check_same(hosts.results, runs, pool)
    tally("Ray, two hosts: the link cut for 30 s", 1, "records byte-equal to the pool's")


@pytest.mark.drill
def test_a_head_that_is_killed_ends_the_sweep_and_the_same_command_goes_on(
    place, runs, prepared, pool, tally
):
    with Hosts(place("head")) as hosts:
        hosts.start_head()
        hosts.start_node()
        sweeping = hosts.sweep(runs, prepared)
        until(lambda: sweeping.poll() is not None or advanced(hosts))
        assert sweeping.poll() is None, sweeping.communicate()[1][-3000:]
        hosts.kill("a", "gcs_server")
        _, err = sweeping.communicate(timeout=250)
        assert sweeping.returncode == 1, err[-3000:]
        (sentence,) = (line for line in err.splitlines() if line.startswith("error: "))
        assert "then the same command, which goes on" in sentence
        for host in "ab":
            hosts.end(host)
        hosts.start_head()
        hosts.start_node()
        finish(hosts.sweep(runs, prepared), runs)
        no_leftovers(hosts)
        check_same(hosts.results, runs, pool)
        names = list(hosts.names.values())
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert not any(name in left for name in names)
    tally("Ray, two hosts: the head killed", 1, "one sentence, exit 1; the same command went on")
