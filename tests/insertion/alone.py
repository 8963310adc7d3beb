"""Find timm, which is installed apart from the rest, and run something beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


def run_with_timm(script: Path | None = None) -> str:
    """Run a file (or the walk) in a process that can import timm; return what it printed.

    timm is looked for in DEPTHPDE_TIMM, then in the folder ``timm`` of the environment:
    pip install --no-deps --target .venv/timm timm
    """
    folder = Path(os.environ.get("DEPTHPDE_TIMM", Path(sys.prefix) / "timm"))
    if not (folder / "timm").is_dir():
        pytest.skip(f"timm is not in {folder.name}/: pip install --no-deps --target … timm")
    command = [sys.executable, str(TESTS / "insertion" / "timm_alone.py"), str(folder)]
    done = subprocess.run(
        command if script is None else [*command, str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
