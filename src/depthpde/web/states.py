"""How a run is shown: its name, and its state as a sign and a word that need no colour."""

from __future__ import annotations

from typing import NamedTuple

from depthpde.pages.formatting import plain
from depthpde.records.index.entry import Snapshot
from depthpde.records.record import State


class StateBadge(NamedTuple):
    """The look of one state."""

    sign: str
    words: str
    tone: str
    """Class of the style sheet: ``good``, ``busy``, ``bad`` or ``quiet``."""


STATE_BADGES = {
    State.RUNNING: StateBadge("▶", "running", "busy"),
    State.DONE: StateBadge("✓", "done", "good"),
    State.STOPPED: StateBadge("■", "stopped early: validation no longer got better", "good"),
    State.DIVERGED: StateBadge("↗", "diverged", "bad"),
    State.FAILED: StateBadge("✗", "failed", "bad"),
    State.LOST: StateBadge("?", "lost: no sign of life for two minutes", "bad"),
    State.INTERRUPTED: StateBadge("‖", "interrupted, will be resumed", "quiet"),
    State.PENDING: StateBadge("○", "pending", "quiet"),
}
"""In the order of a legend."""


def run_name(snapshot: Snapshot, run: str) -> str:
    """Say which run this is, by what the first grid that asks for it calls it."""
    entry = snapshot.entries[run]
    variant = snapshot.places.get(run, ("", entry.label))[1]
    return f"{entry.task} · {plain(variant)} · seed {entry.seed}"
