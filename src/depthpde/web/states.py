"""How a run's state is shown: a sign and a word, so that no meaning hangs on colour."""

from __future__ import annotations

from typing import NamedTuple

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
