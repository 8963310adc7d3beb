"""Locks hold between processes, end with theirs, and nothing but locks.py knows how."""

import subprocess
import sys
from pathlib import Path

import pytest

from depthpde.locks import lock_byte, lock_file, unlock_byte

SOURCE = Path(__file__).parents[1] / "src" / "depthpde"
HOLD = """
import sys
from depthpde.locks import lock_byte, lock_file
handle = open(sys.argv[1], "ab")
whole = sys.argv[2] == "file"
got = lock_file(handle, wait=False) if whole else lock_byte(handle, int(sys.argv[2]))
print(got, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("what", ["file", "70000"])
def test_a_lock_holds_until_its_process_ends(tmp_path, what):
    path = tmp_path / "lock"
    call = [sys.executable, "-c", HOLD, path, what]
    with path.open("ab") as handle:
        take = (
            (lambda: lock_file(handle, wait=False))
            if what == "file"
            else (lambda: lock_byte(handle, int(what)))
        )
        with subprocess.Popen(
            call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout.readline() == "True\n"
            assert not take()
            other.kill()
        assert take()
        if what != "file":
            unlock_byte(handle, int(what))


def test_only_one_file_imports_what_a_system_may_lack():
    """Windows has neither fcntl nor resource; a lazy import behind a check is no harm."""
    users = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(
            line in ("import fcntl", "import resource", "    import fcntl")  # none is guarded
            for line in path.read_text(encoding="utf-8").splitlines()
        )
    ]
    assert users == ["locks.py"]


WINDOWS = """
import sys
sys.platform = "win32"
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
import types
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
import os
del os.O_NONBLOCK, os.O_CLOEXEC
import depthpde
from depthpde import locks, files, errors, config, seeds
import depthpde.records.record, depthpde.records.results, depthpde.pages.templates
print("imported")
"""


def test_what_needs_no_torch_imports_where_posix_modules_are_missing():
    done = subprocess.run([sys.executable, "-c", WINDOWS], capture_output=True, text=True)
    assert done.stdout.strip() == "imported", done.stderr
