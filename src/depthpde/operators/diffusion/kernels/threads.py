"""Running a compiled kernel: on which threads, with what it is shown, and its first compilation.

A kernel is a function of arrays and of a range of tasks, which it works through alone; `launch`
shares the tasks among threads of this process. They wait without spinning and take portions as
they come, so a busy machine slows a kernel down no more than its share; after a ``fork`` the child
starts threads of its own.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
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

PORTIONS = 4
"""Portions of a kernel's tasks for each thread."""
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


@inline
def aligned(numbers, like):  # type: ignore[no-untyped-def]
    """Give zeros that begin at a cache line, so that no load spans two."""
    size = like.itemsize
    raw = np.zeros(numbers + 64 // size, like.dtype)
    skip = (-(raw.ctypes.data // size)) % (64 // size)
    return raw[skip : skip + numbers]


def launch(run: Any, tasks: int, size: int, *arguments: Any) -> None:
    """Run a kernel over all its tasks, on as many threads as torch uses.

    Args:
        run: The kernel; its last two arguments are the first task and the one after the last.
        tasks: Number of tasks.
        size: Numbers it reads, which decides whether more than one thread is worth while.
        arguments: Everything but the range of tasks.
    """
    if not run.overloads:
        _announce(run, arguments)
    parts = 1 if size < SMALL else min(torch.get_num_threads(), tasks)
    if parts <= 1:
        run(*arguments, 0, tasks)
        return
    job = Job(run, arguments, tasks, min(tasks, PORTIONS * parts))
    _crew().help(job, parts - 1)
    job.work()
    job.wait()


class Job:
    """One kernel over all its tasks, in portions that whoever is free takes next.

    The one who waits for the result works as well, so a helper that a busy machine wakes late
    costs nothing: it finds nothing left to do.
    """

    def __init__(self, run: Any, arguments: tuple[Any, ...], tasks: int, portions: int) -> None:
        self.run, self.arguments = run, arguments
        self.bounds = [tasks * each // portions for each in range(portions + 1)]
        self.next = itertools.count()
        self.left, self.counting = portions, threading.Lock()
        self.done = threading.Lock()
        self.done.acquire()
        self.error: BaseException | None = None

    def work(self) -> None:
        """Take portions until none is left."""
        last = len(self.bounds) - 2
        while (portion := next(self.next)) <= last:
            try:
                self.run(*self.arguments, *self.bounds[portion : portion + 2])
            except BaseException as error:
                self.error = error
            with self.counting:
                self.left -= 1
                if self.left == 0:
                    self.done.release()

    def wait(self) -> None:
        """Wait until every portion is done, and pass an error on."""
        self.done.acquire()
        if self.error is not None:
            raise self.error


class Crew:
    """The helping threads of one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        self.size, self.growing = 0, threading.Lock()

    def help(self, job: Job, helpers: int) -> None:
        """Ask some threads to help; start those that there never were."""
        with self.growing:
            while self.size < helpers:
                threading.Thread(target=self._serve, daemon=True, name="depthpde kernel").start()
                self.size += 1
        for _ in range(helpers):
            self.jobs.put(job)

    def _serve(self) -> None:
        while True:
            self.jobs.get().work()


_crews: list[Crew] = []


def _crew() -> Crew:
    """Give this process's crew; a forked child has none of its parent's threads."""
    if not _crews or _crews[-1].process != os.getpid():
        _crews[:] = [Crew()]
    return _crews[-1]


_announced = threading.Event()


def _announce(run: Any, arguments: tuple[Any, ...]) -> None:
    """Tell a person who waits for the first compilation what it is, and how long one took."""
    index = getattr(getattr(run._cache, "_cache_file", None), "_index_path", "")
    if _announced.is_set() or os.path.exists(index):
        return
    _announced.set()
    kept = "kept for next time" if index else "no folder to keep them in"
    print(
        f"depthpde: compiling CPU kernels on their first use, {kept}",
        end="", file=sys.stderr, flush=True,
    )  # fmt: skip
    start = time.perf_counter()
    try:
        run(*arguments, 0, 0)  # over no task: compiled, and nothing done
    finally:
        print(f"; {run.__name__!r} took {time.perf_counter() - start:.1f} s", file=sys.stderr)


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
