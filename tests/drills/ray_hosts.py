"""Two hosts on this machine: network namespaces joined by a cable, each with a Ray node of its own.

Each host has an address of its own, a cache folder of its own, and, by a mount of its own, sees
another results folder than the other one. Only processes inside the two namespaces are ever ended.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from depthpde.runs.run import RunConfig

NETWORK = "10.213.77"
PORT = 6399
SWEEP = """
import json, sys
from pathlib import Path
from depthpde.runs.run import RunConfig
from depthpde.sweeps.clusters.ray_cluster import RayCluster
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.sweep import sweep
runs = [RunConfig.from_dict(each) for each in json.loads(sys.argv[1])]
results = Path(sys.argv[2])
try:
    place = RayCluster(Folders(results, None, Path(sys.argv[3])), sys.argv[4])
    outcome = sweep(runs, place, results)
except ConnectionError as error:
    sys.exit(f"error: {error}")
print(json.dumps({"recorded": outcome.recorded, "failed": outcome.failed}), flush=True)
sys.exit(outcome.exit_code)
"""


JOINED = """
import logging, sys, time, ray
ray.init(address=sys.argv[1], logging_level=logging.ERROR, log_to_driver=False)
while ray.cluster_resources().get("CPU", 0) < 2:
    time.sleep(0.2)
"""


def absent() -> str:
    """Say what two hosts lack here; empty where they can be made."""
    if os.getuid() != 0:
        return "network namespaces are made as root"
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "ip or unshare not installed: apt-get install iproute2 util-linux"
    tried = subprocess.run(["ip", "netns", "add", f"dp{os.getpid()}-try"], capture_output=True)
    if tried.returncode:
        return f"no network namespace can be made: {tried.stderr.decode().strip()}"
    _ip("netns", "del", f"dp{os.getpid()}-try")
    return ""


class Hosts:
    """Hosts ``a`` (the head, where sweeps are started) and ``b``, joined by a cable.

    Args:
        place: An empty folder.
    """

    def __init__(self, place: Path) -> None:
        self.place, self.results = place, place / "results"
        self.names = {each: f"dp{os.getpid()}{each}" for each in "ab"}
        self.address = f"{NETWORK}.1:{PORT}"
        self.token = secrets.token_hex(32)  # a home with a token makes Ray ask for one
        self._started: list[subprocess.Popen[bytes]] = []
        self._last = ""

    def __enter__(self) -> Self:
        self.results.mkdir(parents=True)
        for number, (host, name) in enumerate(self.names.items(), start=1):
            (self.place / host / "cache").mkdir(parents=True)
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
            if host == "b":
                cable = ("type", "veth", "peer", "name", "eth0", "netns", name)
                _ip("link", "add", "eth0", "netns", self.names["a"], *cable)
                for each, space in enumerate(self.names.values(), start=1):
                    _ip("-n", space, "addr", "add", f"{NETWORK}.{each}/24", "dev", "eth0")
                    _ip("-n", space, "link", "set", "eth0", "up")
            assert number <= 2
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for host in self.names:
            self.end(host)
        for process in self._started:
            process.wait(20)
        for name in self.names.values():
            _ip("netns", "del", name)

    def start_head(self) -> None:
        """Start a head with one core on host a, and wait until it answers."""
        self._node("a", "--head", "--port", str(PORT), "--include-dashboard=false")
        self._until(lambda: self._healthy(), "the head does not answer")

    def start_node(self) -> None:
        """Start a node with one core on host b, and wait until the head counts both."""
        self._node("b", "--address", self.address)
        command = [sys.executable, "-c", JOINED, self.address]
        subprocess.run(
            ["ip", "netns", "exec", self.names["a"], *command],
            env=self._environment("a"),
            check=True,
            capture_output=True,
            timeout=120,
        )

    def sweep(self, runs: Sequence[RunConfig], prepared: Path) -> subprocess.Popen[str]:
        """Start a sweep on host a."""
        words = json.dumps([each.to_dict() for each in runs])
        command = [
            sys.executable,
            "-c",
            SWEEP,
            words,
            str(self.results),
            str(prepared),
            self.address,
        ]
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names["a"], *command], env=self._environment("a"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def pids(self, host: str, command: str = "") -> list[int]:
        """Return the processes of a host; those of one name where one is given."""
        printed = subprocess.run(
            ["ip", "netns", "pids", self.names[host]], capture_output=True, text=True, timeout=30
        ).stdout
        found = []
        for pid in map(int, printed.split()):
            try:
                name = Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue  # it has ended meanwhile
            if not command or name == command:
                found.append(pid)
        return found

    def kill(self, host: str, command: str) -> None:
        """Kill the processes of one name on a host."""
        found = self.pids(host, command)
        assert found, f"no {command} on host {host}"
        for pid in found:
            os.kill(pid, signal.SIGKILL)

    def end(self, host: str) -> None:
        """Kill all that is left on a host."""
        for _ in range(20):
            left = self.pids(host)
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.2)
        raise RuntimeError(f"host {host} does not end: {left}")

    def cut(self, seconds: float) -> None:
        """Take the cable out, and put it in again after a while."""
        _ip("-n", self.names["b"], "link", "set", "eth0", "down")
        time.sleep(seconds)
        _ip("-n", self.names["b"], "link", "set", "eth0", "up")

    def begun_on(self, host: str) -> dict[str, int]:
        """Return the updates of the runs whose record lies with a host and is not whole."""
        if host == "a":
            folders = list((self.results / "runs").glob("*"))
        else:
            folders = list((self.place / "b" / "cache").glob("**/runs/*"))
        found = {}
        for folder in folders:
            try:
                status = json.loads((folder / "status.json").read_text())
            except (OSError, ValueError):
                continue
            if status.get("state") == "running":
                found[folder.name] = int(status.get("update", 0))
        return found

    def _node(self, host: str, *words: str) -> None:
        address = f"{NETWORK}.{1 + 'ab'.index(host)}"
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
        room = ["--num-cpus", "1", "--object-store-memory", str(100 * 2**20)]
        own = ["--node-ip-address", address, "--temp-dir", str(self.place / host / "ray")]
        command = [*ray, *words, *room, *own]
        if host == "b":  # another results folder under the same name
            mounted = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
            command = ["unshare", "-m", "sh", "-c", mounted, str(self.results), *command]
        with (self.place / f"{host}.log").open("ab") as log:
            self._started.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", self.names[host], *command],
                    env=self._environment(host),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _environment(self, host: str) -> dict[str, str]:
        own = {
            "XDG_CACHE_HOME": str(self.place / host / "cache"), "RAY_USAGE_STATS_ENABLED": "0",
            "OMP_NUM_THREADS": "1", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token,
        }  # fmt: skip
        return {**os.environ, **own}

    def _healthy(self) -> bool:
        command = [
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "health-check",
            "--address",
            self.address,
        ]
        asked: Any = subprocess.run(
            ["ip", "netns", "exec", self.names["a"], *command],
            env=self._environment("a"),
            capture_output=True,
            timeout=60,
        )
        self._last = asked.stderr.decode(errors="replace")[-1500:]
        return bool(asked.returncode == 0)

    def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        end = time.monotonic() + 90
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.5)
        logs = "".join(each.read_text()[-1500:] for each in self.place.glob("*.log"))
        raise RuntimeError(f"{otherwise}:\n{logs}\n{self._last}")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)
