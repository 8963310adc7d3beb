"""make check: format, lint, types, and the tests of what changed, within 90 seconds.

    src/depthpde/a/b.py  →  tests/a/test_b.py, or the place that tests/test_mirror.py names

What changed is what differs from BASE (origin/main unless given), new files included. The tests of
the map always run, and types are checked beside them. What is over time is named and left to
`make types` and `make test`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 90.0
ALWAYS = ("tests/test_architecture.py", "tests/test_mirror.py", "tests/test_site.py")
WRITTEN = ("tests/test_readme.py",)
"""Tests of what is written rather than computed: README, docs, examples."""


def tests_of(changed: Iterable[str], elsewhere: dict[str, dict[str, str]]) -> list[str]:
    """Return the test files of changed files that exist, in a stable order.

    Args:
        changed: Paths from the root of the repository.
        elsewhere: Folder → file → the test file that does its work, as tests/test_mirror.py has it.
    """
    found = set(ALWAYS)
    for name in changed:
        path = Path(name)
        if name.startswith("tests/") and path.name.startswith("test_"):
            found.add(name)
        elif name.startswith("src/depthpde/") and path.suffix == ".py":
            inside = path.relative_to("src/depthpde")
            other = elsewhere.get(inside.parent.as_posix(), {}).get(path.stem)
            found.add(f"tests/{other or inside.parent / f'test_{path.name}'}")
        elif name.startswith(("docs/", "examples/", "README")):
            found |= {*WRITTEN}
    return sorted(each for each in found if (ROOT / each).is_file())


def changed_files(base: str) -> list[str]:
    """Return what differs from a commit, in the working tree, untracked files included."""
    calls = (
        ["git", "diff", "--name-only", "--diff-filter=d", base],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    lines: list[str] = []
    for call in calls:
        lines += subprocess.run(
            call, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
    return lines


def start(call: list[str]) -> subprocess.Popen[bytes]:
    """Start one step, and print its name."""
    print("·", " ".join(call[:4]), flush=True)
    return subprocess.Popen([sys.executable, "-m", *call], cwd=ROOT)


def finish(step: subprocess.Popen[bytes], until: float, rest: str) -> int:
    """Return the exit code of a step; 0 where the time is over, after saying what does the rest.

    Args:
        step: As `start` returned it.
        until: Of the monotonic clock.
        rest: The command that has the time.
    """
    try:
        return step.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        step.terminate()
        step.wait()
        print(f"{SECONDS:.0f} s are over and this was not checked to its end: {rest}", flush=True)
        return 0


def main() -> int:
    """Run the steps in turn; the first that fails ends it."""
    sys.path.insert(0, str(ROOT / "tests"))
    from test_mirror import ELSEWHERE

    until = time.monotonic() + SECONDS
    for step in (["ruff", "format", "--check", "."], ["ruff", "check", "."]):
        if code := start(step).wait():
            return code
    files = tests_of(changed_files(os.environ.get("BASE", "origin/main")), ELSEWHERE)
    print(f"{len(files)} test files: {' '.join(files)}")
    types = start(["mypy"])
    others = (os.cpu_count() or 2) - 1  # types take a core
    together = ["-n", str(others)] if others > 1 else []
    tests = start(["pytest", "-q", "-x", "-m", "not drill", *together, *files])
    codes = [finish(tests, until, "make test"), finish(types, until, "make types")]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
