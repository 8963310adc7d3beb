"""Running a compiled kernel: on which threads, and with what it is shown.

A kernel is a function of arrays and of a range of tasks, which it works through alone; `launch`
shares the tasks among torch's own threads (`team`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthpde.operators.kernels import team
from depthpde.operators.kernels.compilation import announce
from depthpde.shapes import Edges

SMALL = 1 << 15
"""Numbers in a field below which waking a second thread costs more than it saves."""

PORTIONS = 4
"""Portions of a kernel's tasks for each thread."""
TASKS = 32
"""Tasks that a field is cut into, if it is long enough."""

_ALL_OPEN = np.zeros((0, 0), np.uint8)


def launch(run: Any, tasks: int, size: int, *arguments: Any) -> None:
    """Run a kernel over all its tasks, on as many threads as torch uses.

    Args:
        run: The kernel; its last two arguments are the first task and the one after the last.
        tasks: Number of tasks.
        size: Numbers it reads, which decides whether more than one thread is worth while.
        arguments: Everything but the range of tasks.
    """
    if not run.overloads:
        announce(run, arguments)
    threads = 1 if size < SMALL else min(team.num_threads(), tasks)
    portions = 1 if threads <= 1 else min(tasks, PORTIONS * threads)
    if run(team.region(), threads, portions, tasks, *arguments):
        raise MemoryError(f"kernel {run.__name__!r} found no memory to work in; use fewer threads")


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
