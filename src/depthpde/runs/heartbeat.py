"""The heartbeat of a run: its status file, written again and again while the run lives."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from depthpde.files import read_json, write_json
from depthpde.records.record import FINISHED, STATUS, State
from depthpde.runs.failure import explain, undisturbed

BEAT = 5.0
"""Seconds between two heartbeats."""
ASKED = (KeyboardInterrupt, SystemExit)
"""What ends a run from outside; a cluster that requeues it raises the second."""


class Heartbeat:
    """Shows every few seconds that a run is alive, and at the end how it ended.

    Args:
        folder: The run's folder.
        updates: Updates of the whole run.
    """

    def __init__(self, folder: Path, updates: int) -> None:
        self.path, self.updates = folder / STATUS, updates
        self.state, self.update, self.signal = State.RUNNING, 0, 0
        self.first: int | None = None
        self.stage: dict[str, Any] = {}
        self.started = time.time()
        self.attempts = 1 + _attempts(self.path)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def pretrain(self, update: int, updates: int) -> None:
        """Note how far the stage before the training is."""
        self.stage = {"stage": {"name": "pretraining", "update": update, "updates": updates}}

    def reach(self, update: int) -> None:
        """Note that an update is made; the first shows where this session took the run up."""
        self.stage = {}
        if self.first is None:
            self.first = update - 1
        self.update = update

    def __enter__(self) -> Self:
        self._write("")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if error is not None and self.state not in FINISHED:
            self.state = State.INTERRUPTED if isinstance(error, ASKED) else State.FAILED
            self.signal = int(getattr(error, "signal", self.signal))
        with undisturbed():
            self._write_last("" if error is None else explain(error, self.path.parent))

    def _write_last(self, error: str) -> None:
        """Write how it ended; on a full disk over the old status, which has its blocks already."""
        try:
            self._write(error)
        except OSError:
            if not self.path.is_file():
                raise
            text = json.dumps(self._said(error))
            with self.path.open("r+", encoding="utf-8") as stream:
                stream.write(text)
                stream.truncate()

    def _beat(self) -> None:
        while not self._stop.wait(BEAT):
            try:
                self._write("")
            except OSError:
                continue  # a full disk will be met by the run itself, which can say so

    def _write(self, error: str) -> None:
        write_json(self.path, self._said(error))

    def _said(self, error: str) -> dict[str, Any]:
        status: dict[str, Any] = {
            "state": self.state.value,
            "update": self.update,
            "updates": self.updates,
            "attempts": self.attempts,
            "error": error,
        } | self.stage
        if self.state is State.RUNNING:
            status |= {
                "first": self.first or 0,
                "heartbeat": time.time(),
                "started": self.started,
                "host": socket.gethostname(),
                "pid": os.getpid(),
            }
        if self.signal:
            status["signal"] = self.signal
        return status


def _attempts(path: Path) -> int:
    try:
        return int(read_json(path)["attempts"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
