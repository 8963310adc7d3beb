"""A reason names what to do, and is never empty."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time

import pytest

from depthpde.runs.failure import TerminatedError, explain, is_full_disk, terminable, undisturbed


def test_a_full_disk_is_named_by_its_folder_and_what_is_free(tmp_path):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    printed = explain(full, tmp_path)
    assert f"the disk of {tmp_path} is full (" in printed
    assert "bytes free" in printed
    wrapped = RuntimeError("Error while serializing: No space left on device (os error 28)")
    assert is_full_disk(wrapped)
    assert not is_full_disk(OSError(errno.EACCES, "no"))


def test_a_folder_that_is_gone_still_gets_its_reason(tmp_path):
    assert "unknown free" in explain(OSError(errno.EDQUOT, "quota"), tmp_path / "gone")


def test_too_little_memory_is_never_an_empty_reason(tmp_path):
    assert "out of memory; use fewer --workers" in explain(MemoryError(), tmp_path)
    assert "(9 GB)" in explain(MemoryError("9 GB"), tmp_path)
    assert explain(RuntimeError(), tmp_path) == "RuntimeError: without words"


def test_sigterm_raises_where_it_would_have_killed_and_only_there():
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with pytest.raises(TerminatedError), terminable():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_somebody_else_stays():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *words: seen.append(1))
    try:
        with terminable():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [1]


def test_a_signal_waits_until_the_last_status_is_written():
    done = []

    def write():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
        done.append(1)

    with pytest.raises(TerminatedError), terminable(), undisturbed():
        write()
    assert done == [1]


def test_another_thread_does_not_let_a_held_signal_through():
    done, stop = [], threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()

    def write():
        signal.pthread_kill(other.ident, signal.SIGTERM)
        time.sleep(0.05)
        done.append(1)

    try:
        with pytest.raises(TerminatedError), terminable(), undisturbed():
            write()
    finally:
        stop.set()
        other.join()
    assert done == [1]


def test_outside_the_main_thread_nothing_is_held():
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def write():
        with undisturbed():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert seen == [before]
