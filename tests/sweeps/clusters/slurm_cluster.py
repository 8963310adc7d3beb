"""A real SLURM of one node on this machine, for drills: its daemons start, serve and end here."""

from __future__ import annotations

import fcntl
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIG = """ClusterName=drill
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
KillWait=20
MinJobAge=3600
JobRequeue=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def absent() -> str:
    """Say what a cluster lacks here; empty where it can be started."""
    lacking = [each for each in DAEMONS if shutil.which(each, path=_path()) is None]
    if lacking:
        return f"{', '.join(lacking)} not installed: apt-get install slurm-wlm munge"
    return "" if os.getuid() == 0 else "SLURM's daemons are started as root"


@contextmanager
def one_node(place: Path) -> Iterator[None]:
    """Start the daemons, wait until the node is idle, and end them afterwards.

    One cluster at a time: SLURM's ports are the machine's, and drills run in several processes.

    Args:
        place: An empty folder; the environment of this process leads to it meanwhile.
    """
    with (Path(tempfile.gettempdir()) / "depthpde-drill-slurm.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        with _daemons(place):
            yield


@contextmanager
def _daemons(place: Path) -> Iterator[None]:
    for name in ("state", "spool"):
        (place / name).mkdir(parents=True)
    (place / "slurm.conf").write_text(CONFIG.format(host=socket.gethostname(), place=place))
    (place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    before = {name: os.environ.get(name) for name in ("SLURM_CONF", "PATH")}
    os.environ |= {"SLURM_CONF": str(place / "slurm.conf"), "PATH": _path()}
    started: list[subprocess.Popen[bytes]] = []
    try:
        if not Path("/run/munge/munge.socket.2").exists():
            Path("/run/munge").mkdir(exist_ok=True)
            shutil.chown("/run/munge", "munge", "munge")
            munged = ["runuser", "-u", "munge", "--", "munged", "--foreground"]
            started.append(_start(munged, place / "munged.log"))
        started.append(_start(["slurmctld", "-D"], place / "controller.log"))
        started.append(_start(["slurmd", "-D"], place / "node.log"))
        _until_idle(place)
        yield
    finally:
        _end_jobs()
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def ask(*command: str) -> str:
    """Run one of SLURM's commands and return what it prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def _end_jobs() -> None:
    """Cancel what is left and wait until it has ended: without daemons nobody would end it."""
    with suppress(subprocess.SubprocessError, OSError):
        ask("scancel", "--quiet", "--user", getpass.getuser())
        end = time.monotonic() + 60
        while ask("squeue", "--noheader") and time.monotonic() < end:
            time.sleep(0.5)


def _start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=stream)


def _until_idle(place: Path) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        with suppress(subprocess.SubprocessError):
            if "idle" in ask("sinfo", "--noheader", "--format=%t"):
                return
        time.sleep(0.5)
    logs = "\n".join((place / name).read_text() for name in ("controller.log", "node.log"))
    raise RuntimeError(f"SLURM did not come up:\n{logs[-3000:]}")


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"
