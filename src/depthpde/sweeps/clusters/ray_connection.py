"""Connect to a Ray cluster, or say within seconds that there is none."""

from __future__ import annotations

import logging
import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

IMPORT = 60.0
"""Seconds that importing Ray may take."""
_ASK = "from ray.scripts.scripts import main; print('imported', flush=True); main()"
PATIENCE = 3.0, 7.0
"""Seconds that a host is given to accept a connection, and a cluster to say that it is healthy."""


def connect(address: str) -> Any:
    """Join the cluster at an address and return the `ray` module.

    Ray itself waits minutes for an address that does not answer and then ends the process, so
    it is asked by a process of its own first.

    Args:
        address: ``HOST:PORT`` of the head, or ``auto``: ``$RAY_ADDRESS``, the cluster that this
            machine belongs to, or a new one here.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise ValueError("`--ray` needs Ray: pip install 'depthpde[ray]'") from error
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address != "auto":
        _check_answers(address)
        ray.init(address=address, **quiet)
        return ray
    note = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    try:
        if note.exists() and not _healthy(None):  # left behind by a cluster that was killed
            raise ConnectionError(f"{note} names a cluster that does not answer")
        ray.init(address="auto", **quiet)
    except ConnectionError:
        ray.init(address="local", include_dashboard=False, **quiet)
    return ray


def _check_answers(address: str) -> None:
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(
            f"`--ray` must be auto or HOST:PORT of the cluster's head, got {address!r}"
        )
    problem = ""
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE[0]).close()
    except OSError as error:
        problem = str(error)
    if not problem and not address.startswith("ray://") and not _healthy(address):
        problem = "something listens there, but no Ray cluster of this version answers"
    if problem:
        raise ConnectionError(
            f"`--ray` must be a cluster that answers, got {address} ({problem}); start one with "
            "`ray start --head`, or use --ray auto or --workers"
        )


def _healthy(address: str | None) -> bool:
    """Ask a cluster whether it is there, in a process that can be given up.

    On a busy machine importing Ray takes longer than any answer of a cluster, so the time of the
    answer counts from when that is done.
    """
    words = ["--address", address] if address else []
    command = [sys.executable, "-c", _ASK, "health-check", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as asked:
        assert asked.stdout is not None
        try:
            ready, _, _ = select.select([asked.stdout], [], [], IMPORT)
            return bool(ready) and asked.wait(PATIENCE[1]) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            asked.kill()
