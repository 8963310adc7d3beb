"""Running a compiled kernel: on which threads, with what it is shown, and its first compilation.

A kernel is a function of arrays and of a range of tasks, which it works through alone; `launch`
splits the tasks among threads of this process. They wait without spinning, so a busy machine slows
a kernel down no more than its share, and after a ``fork`` the child starts threads of its own.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from depthpde.shapes import Edges

SMALL = 1 << 15
"""Numbers in a field below which waking a second thread costs more than it saves."""

TASKS = 32
"""Tasks that a field is cut into, if it is long enough."""

_ALL_OPEN = np.zeros((0, 0), np.uint8)
_FLAGS: dict[str, Any] = {"nogil": True, "fastmath": {"contract", "nsz"}, "error_model": "numpy"}


def kernel(function: Callable[..., None], **flags: Any) -> Any:
    """Compile a kernel on its first call, and keep it on disk where a folder can be written."""
    flags = _FLAGS | flags
    try:
        return numba.njit(cache=True, **flags)(function)
    except RuntimeError:  # neither the package's folder nor a cache of the user's can be written
        return numba.njit(**flags)(function)


def sum_kernel(function: Callable[..., None]) -> Any:
    """Compile a kernel whose sums may be taken in any order, so in several lanes at once."""
    return kernel(function, fastmath=_FLAGS["fastmath"] | {"reassoc"})


inline = numba.njit(inline="always", **_FLAGS)
"""Compile a part of kernels, written into each of them."""


def launch(run: Any, tasks: int, size: int, *arguments: Any) -> None:
    """Run a kernel over all its tasks, on as many threads as torch uses.

    Args:
        run: The kernel; its last two arguments are the first task and the one after the last.
        tasks: Number of tasks.
        size: Numbers it reads, which decides whether more than one thread is worth while.
        arguments: Everything but the range of tasks.
    """
    if not run.overloads:
        _announce(run)
    parts = 1 if size < SMALL else min(torch.get_num_threads(), tasks)
    if parts <= 1:
        run(*arguments, 0, tasks)
        return
    bounds = [tasks * part // parts for part in range(parts + 1)]
    waiting = [
        _crew().send(run, (*arguments, *bounds[part : part + 2])) for part in range(1, parts)
    ]
    try:
        run(*arguments, *bounds[:2])
    finally:
        for each in waiting:
            each.wait()


class Share:
    """What one thread was sent to do."""

    def __init__(self, run: Any, arguments: tuple[Any, ...]) -> None:
        self.run, self.arguments = run, arguments
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def work(self) -> None:
        """Do it, and keep an error for the one who waits."""
        try:
            self.run(*self.arguments)
        except BaseException as error:
            self.error = error

    def wait(self) -> None:
        """Wait until it is done, and pass its error on."""
        self.done.acquire()
        if self.error is not None:
            raise self.error


class Crew:
    """The threads of one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.queue: SimpleQueue[Share] = SimpleQueue()
        self.idle = threading.Semaphore(0)

    def send(self, run: Any, arguments: tuple[Any, ...]) -> Share:
        """Let a thread that is free do a share; start one if none is."""
        share = Share(run, arguments)
        if not self.idle.acquire(blocking=False):
            threading.Thread(target=self._serve, daemon=True, name="depthpde kernel").start()
        self.queue.put(share)
        return share

    def _serve(self) -> None:
        while True:
            share = self.queue.get()
            share.work()
            self.idle.release()  # first: who waits may send the next share at once
            share.done.release()


_crews: list[Crew] = []


def _crew() -> Crew:
    """Give this process's crew; a forked child has none of its parent's threads."""
    if not _crews or _crews[-1].process != os.getpid():
        _crews[:] = [Crew()]
    return _crews[-1]


_announced = threading.Event()


def _announce(run: Any) -> None:
    """Tell a person who waits for the first compilation what it is."""
    index = getattr(getattr(run._cache, "_cache_file", None), "_index_path", "")
    if _announced.is_set() or os.path.exists(index):
        return
    _announced.set()
    print(
        "depthpde: compiling CPU kernels on their first use, about 2 s each; kept for next time",
        file=sys.stderr,
    )


def edge_array(edges: Edges | None) -> NDArray[np.uint8]:
    """Show open edges to numba; an empty array stands for all open."""
    if edges is None:
        return _ALL_OPEN
    return edges.contiguous().numpy().view(np.uint8)


def tile_length(batch: int, length: int) -> int:
    """Choose how many sites one task takes: at least `TASKS` tasks in all where length allows.

    Sums are taken over one task and then over the tasks, so no bit depends on how many threads
    there are.
    """
    return max(64, -(-length // -(-TASKS // max(batch, 1))))
