"""File locks: the operating system lets go of them when a process ends, however it ends.

POSIX has them in `fcntl`, Windows in `msvcrt`; nothing else of the package imports either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":  # not run by any test of ours
    import msvcrt

    def lock_file(handle: IO[Any], *, wait: bool) -> bool:
        """Lock a whole file; False where another process has it and `wait` is not set."""
        return _lock_byte(handle, 0, wait=wait)

    def lock_byte(handle: IO[Any], offset: int) -> bool:
        """Lock one byte of a file, which need not have it; False where another process has it."""
        return _lock_byte(handle, offset, wait=False)

    def unlock_byte(handle: IO[Any], offset: int) -> None:
        """Let go of one byte."""
        handle.seek(offset)
        msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)

    def _lock_byte(handle: IO[Any], offset: int, *, wait: bool) -> bool:
        while True:
            try:
                handle.seek(offset)
                msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:  # LK_LOCK gives up after ten seconds
                if not wait:
                    return False
            else:
                return True
else:
    import fcntl

    def lock_file(handle: IO[Any], *, wait: bool) -> bool:
        """Lock a whole file; False where another process has it and `wait` is not set."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def lock_byte(handle: IO[Any], offset: int) -> bool:
        """Lock one byte of a file, which need not have it; False where another process has it."""
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock_byte(handle: IO[Any], offset: int) -> None:
        """Let go of one byte."""
        fcntl.lockf(handle, fcntl.LOCK_UN, 1, offset)


GRIDS_LOCK = ".grids"
"""File of a results folder that is locked while a grid or a protocol is written."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, made where there is none; waits for the process that has it."""
    with path.open("ab") as handle:
        lock_file(handle, wait=True)
        yield
