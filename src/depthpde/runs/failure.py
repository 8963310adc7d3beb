"""Why a run ended, in words that name what to do: a full disk, too little memory, a signal."""

from __future__ import annotations

import errno
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_WORDS = ("No space left on device", "Disk quota exceeded", "os error 28", "os error 122")


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, where nobody else handles it: ends a run as Ctrl-C does."""

    signal = signal.SIGTERM


def explain(error: BaseException, folder: Path) -> str:
    """Return why a run ended: the error's kind and text, never an empty reason.

    Args:
        error: What it raised.
        folder: Where its files are; a full disk is named by it.
    """
    words = str(error).strip()
    if is_full_disk(error):
        free = "unknown"
        with suppress(OSError):
            free = f"{shutil.disk_usage(folder).free:,} bytes"
        return (
            f"the disk of {folder} is full ({free} free): make room, and the same command goes on"
        )
    if isinstance(error, MemoryError):
        more = f" ({words})" if words else ""
        return f"MemoryError: out of memory{more}; use fewer --workers, or a smaller batch_size"
    return f"{type(error).__name__}: {words or 'without words'}"


def is_full_disk(error: BaseException) -> bool:
    """Return whether an error means a full disk, also where a library has put it into a text."""
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    return any(each in str(error) for each in _FULL_WORDS)


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM raise `TerminatedError`, where it would end the process without a word.

    A handler that somebody else has set stays: a pool and a cluster have their own. Outside the
    main thread Python allows none.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back for the moment that a last status takes to be written.

    Handlers note what comes and pass it on at the end. A mask of this thread would not do: the
    system hands a signal of the process to any thread that does not block it, and torch has some.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs handlers in the main thread alone
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not None  # set outside Python: it could not be put back
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in dict.fromkeys(came):
            signal.raise_signal(each)


def _raise(number: int, frame: FrameType | None) -> None:
    raise TerminatedError("terminated")
