"""How many threads torch computes with, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


def one_thread() -> AbstractContextManager[None]:
    """Compute with one thread: in fields this small, threads wait more than they work."""
    return threads(1)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with a number of threads, and afterwards with as many as before.

    Sums are split among the threads, so their last bits depend on the number.

    >>> with threads(2):
    ...     torch.get_num_threads()
    2

    Args:
        count: How many.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
