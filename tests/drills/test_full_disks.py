"""A disk without room or without inodes is named, and nothing is lost once there is room."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.drill
@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("unshare") is None, reason="a disk is mounted as root"
)
def test_twenty_full_disks_are_named_and_lose_nothing(prepared, tmp_path, tally):
    words = ["-m", "drills.full_disks", str(tmp_path), str(prepared)]
    done = subprocess.run(
        ["unshare", "-m", sys.executable, *words], cwd=HERE.parent, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    printed = json.loads(done.stdout)
    assert printed["wrong"] == []
    assert printed["full"] >= 15, "hardly any disk was full"
    held = "status and message name the disk; with room again the record is byte-equal"
    tally("A full disk under a run (tmpfs of many sizes)", printed["sizes"], held)
    tally("A disk out of inodes under a run", printed["counts"], held)
