"""Runs that show no life: whose heartbeat stands still although their worker seems to run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from depthpde.files import read_json
from depthpde.records.record import STATUS, State, run_folder

LOST = 600.0
"""Seconds without a heartbeat after which a run is given up; it beats every five."""
LOOK = 15.0
"""Seconds between two looks."""


class LostRuns:
    """Watches the heartbeats of runs that are computed elsewhere.

    Only a heartbeat that was seen since the run was given away can stop: what an earlier
    attempt left behind says nothing, and a job may wait in a queue for days.

    Args:
        results: The results folder.
        patience: Seconds without a beat after which a run is lost.
    """

    def __init__(self, results: Path, patience: float = LOST) -> None:
        self.results, self.patience = results, patience
        self._beats: dict[str, object] = {}
        self._alive: dict[str, float] = {}
        self._looked = 0.0

    def start(self, run: str) -> None:
        """Note that a run was given away."""
        self._beats[run] = self._beat(run)
        self._alive.pop(run, None)

    def find(self, flying: Iterable[str]) -> list[str]:
        """Return the runs that are lost, each once; looks now and then only."""
        now = time.monotonic()
        if now - self._looked < min(LOOK, self.patience / 4):
            return []
        self._looked = now
        lost = []
        for run in flying:
            beat = self._beat(run)
            if beat is not None and beat != self._beats.get(run):
                self._beats[run], self._alive[run] = beat, now
            elif beat is not None and now - self._alive.get(run, now) > self.patience:
                del self._alive[run]
                lost.append(run)
        return lost

    def _beat(self, run: str) -> object:
        """Return the last heartbeat of a run that says it is running, else None."""
        try:
            status = read_json(run_folder(self.results, run) / STATUS)
        except (OSError, ValueError):
            return None
        return status.get("heartbeat") if status.get("state") == State.RUNNING.value else None
