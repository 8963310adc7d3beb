"""Where and with what a run was computed."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from depthpde.files import read_json

PACKAGES = ("torch", "numpy", "numba", "safetensors", "scipy")


def describe_environment() -> dict[str, Any]:
    """Return versions, the commit of the source, the machine, and the threads that are used."""
    import torch

    from depthpde import __version__

    return {
        "versions": {"depthpde": __version__, "python": platform.python_version()}
        | {name: _version(name) for name in PACKAGES},
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no", "--", "src")),
        "machine": {
            "platform": f"{platform.system()} {platform.machine()}",
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_bytes": _memory(),
        },
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def remember_environments(path: Path, now: dict[str, Any]) -> dict[str, Any]:
    """Return an environment with those under ``earlier`` that a run's file holds.

    Args:
        path: The run's file; a run that is resumed elsewhere was computed in all of them.
        now: Where it is computed from here on.
    """
    try:
        before = read_json(path)
    except (OSError, ValueError):
        return now  # there is none yet, or it was not written whole
    known = [*before.pop("earlier", []), before] if isinstance(before, dict) else []
    earlier = [each for each in known if each != now]
    return now | ({"earlier": earlier} if earlier else {})


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git(*words: str) -> str | None:
    """Ask git about the source the package runs from; None where it is installed without."""
    source = Path(__file__).resolve().parents[3]
    if not (source / ".git").exists():
        return None
    try:
        found = subprocess.run(
            ["git", *words], cwd=source, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    if sys.platform == "win32":
        return None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
