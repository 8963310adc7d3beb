"""A head that answers is left alone; one that does not is told in words, within its patience."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import pytest

from depthpde.sweeps.clusters import ray_head
from depthpde.sweeps.clusters.ray_head import HeadWatch


@pytest.fixture
def hasty(monkeypatch):
    for name, seconds in (("PATIENCE", 0.3), ("LAST", 60.0), ("ASK", 0.02)):
        monkeypatch.setattr(ray_head, name, seconds)


@pytest.mark.usefixtures("hasty")
def test_silence_is_told_after_a_while_and_an_answer_ends_it(tmp_path):
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    watch = HeadWatch(f"127.0.0.1:{port}", tmp_path)
    time.sleep(0.5)
    watch.check()
    server.close()
    time.sleep(0.6)
    with pytest.raises(ConnectionError, match=f"127.0.0.1:{port} has not answered .* goes on"):
        watch.check()
    assert watch.silent()
    with socket.create_server(("127.0.0.1", port)):
        time.sleep(0.3)
        assert not watch.silent(), "a network that comes back"
    watch.close()


def test_a_process_that_cannot_end_is_ended():
    script = (
        "import time; from pathlib import Path; from depthpde.sweeps.clusters import ray_head\n"
        "ray_head.PATIENCE, ray_head.LAST, ray_head.ASK = 0.1, 0.1, 0.02\n"
        "watch = ray_head.HeadWatch('127.0.0.1:1', Path('r')); time.sleep(30)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the head of the Ray cluster at 127.0.0.1:1")


def test_who_is_told_late_has_time_to_say_so():
    """The watch ended the process between the error and its sentence: exit 1 without a word."""
    script = (
        "import sys, time; from pathlib import Path\n"
        "from depthpde.sweeps.clusters import ray_head\n"
        "ray_head.PATIENCE, ray_head.LAST, ray_head.ASK = 0.1, 1.0, 0.02\n"
        "watch = ray_head.HeadWatch('127.0.0.1:1', Path('r')); time.sleep(0.9)\n"
        "try: watch.check()\n"
        "except ConnectionError as error:\n"
        "    time.sleep(0.5); print('error:', error, file=sys.stderr, flush=True); time.sleep(30)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 1
    assert done.stderr.count("error: the head of the Ray cluster at 127.0.0.1:1") == 1
