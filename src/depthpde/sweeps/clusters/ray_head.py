"""Whether the head of a Ray cluster still answers, and what to do when it does not.

Ray waits a minute for a head that is gone, blocking whoever calls it, and then ends the process
with a page of its own log. The sweep ends before that, in words.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from pathlib import Path

PATIENCE = 40.0
"""Seconds without an answer after which the sweep ends; a network may be away for less."""
LAST = 12.0
"""Seconds more after which this process is ended, should a call of Ray keep it from ending."""
ASK = 3.0
"""Seconds between two questions, and the longest that one may take."""


class HeadWatch:
    """Asks the head now and then, in a thread of its own.

    Args:
        address: ``HOST:PORT`` of the head.
        results: The results folder, for the message.
    """

    def __init__(self, address: str, results: Path) -> None:
        host, _, port = address.rpartition(":")
        self.address, self.results = (host.strip("[]"), int(port)), results
        self._answered = time.monotonic()
        self._raised: float | None = None
        self._closed = threading.Event()
        threading.Thread(target=self._ask, daemon=True).start()

    def silent(self) -> bool:
        """Say whether the head has been silent for longer than a network may be away."""
        return time.monotonic() - self._answered > PATIENCE

    def check(self) -> None:
        """Raise where the head is gone."""
        if self.silent():
            self._raised = time.monotonic()
            raise ConnectionError(self._sentence())

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()

    def _ask(self) -> None:
        while not self._closed.wait(ASK):
            try:
                socket.create_connection(self.address, timeout=ASK).close()
                self._answered = time.monotonic()
            except OSError:
                # Who was told only now, by `check`, has as long to say so and to leave.
                since = self._raised or self._answered + PATIENCE
                if time.monotonic() - since > LAST:
                    self._end()

    def _end(self) -> None:
        """End this process: the main thread is inside a call of Ray that will not return."""
        if self._raised is None:
            print(f"error: {self._sentence()}", file=sys.stderr, flush=True)
        os._exit(1)

    def _sentence(self) -> str:
        host, port = self.address
        return (
            f"the head of the Ray cluster at {host}:{port} has not answered for {PATIENCE:.0f} s; "
            f"what was computed is saved in {self.results} or on its machines: start the cluster, "
            "then the same command, which goes on"
        )
