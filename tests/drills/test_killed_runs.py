"""A run killed at any file event, or at any moment, ends as one that was not.

The slice of every test run is tests/training/test_killed.py: ten kills at random moments.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def killed(folder: Path, prepared: Path, events: int, randoms: int) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "drills.killed_runs", str(folder), str(prepared), str(events),
         str(randoms)],
        cwd=HERE.parent, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.drill
def test_forty_kills_at_file_events_and_at_random_lose_no_bit(prepared, tmp_path, tally):
    printed = killed(tmp_path, prepared, 36, 14)
    assert printed["wrong"] == []
    assert printed["at events"] == 36
    exact = f"one of {printed['events']} changes of its folder"
    held = "taken up, the record is byte-equal to that of a run left alone"
    tally(f"A run killed (SIGKILL) at {exact}", 36, held)
    tally("A run killed (SIGKILL) at a random moment", 14, held)
