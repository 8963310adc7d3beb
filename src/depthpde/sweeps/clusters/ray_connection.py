"""Connect to a Ray cluster, or say within seconds that there is none."""

from __future__ import annotations

import logging
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

IMPORT = 60.0
"""Seconds that importing Ray may take."""
_ASK = "from ray.scripts.scripts import main; print('imported', flush=True); main()"
_TOKEN = (
    "`--ray` must be a cluster that lets this sweep in, but {} asks for a token; copy "
    "~/.ray/auth_token of its head to this host and the others, and set RAY_AUTH_MODE=token"
)
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
    health = _health(None) if note.exists() else "silent"  # a cluster that was killed leaves a note
    if health == "token":  # Ray shows this machine's own token to this machine's cluster by itself
        health = _health(None, {"RAY_AUTH_MODE": "token"})
        if health != "fine":
            raise ConnectionError(_TOKEN.format("this machine's cluster"))
    if health == "silent":
        ray.init(address="local", include_dashboard=False, **quiet)
    else:
        ray.init(address="auto", **quiet)
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
    if not problem and not address.startswith("ray://"):
        health = _health(address)
        if health == "token":
            raise ConnectionError(_TOKEN.format(address))
        if health == "silent":
            problem = "something listens there, but no Ray cluster of this version answers"
    if problem:
        raise ConnectionError(
            f"`--ray` must be a cluster that answers, got {address} ({problem}); start one with "
            "`ray start --head`, or use --ray auto or --workers"
        )


def _health(
    address: str | None, more: Mapping[str, str] = MappingProxyType({})
) -> Literal["fine", "token", "silent"]:
    """Ask a cluster whether it is there, in a process that can be given up.

    On a busy machine importing Ray takes longer than any answer of a cluster, so the time of the
    answer counts from when that is done.

    Args:
        address: Of its head; None for this machine's cluster.
        more: Variables of the environment to ask with.

    Returns:
        ``token`` where a cluster answers that it wants a token, and got none or another one.
    """
    words = ["--address", address] if address else []
    command = [sys.executable, "-c", _ASK, "health-check", *words]
    pipe, environment = subprocess.PIPE, {**os.environ, **more}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=pipe, stderr=errors, env=environment) as asked,
    ):
        assert asked.stdout is not None
        try:
            ready, _, _ = select.select([asked.stdout], [], [], IMPORT)
            if ready and asked.wait(PATIENCE[1]) == 0:
                return "fine"
        except subprocess.TimeoutExpired:
            pass
        finally:
            asked.kill()
        errors.seek(0)
        return "token" if b"AuthenticationError" in errors.read() else "silent"
