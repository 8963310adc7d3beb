"""Compiling a kernel on its first use, once a machine, and saying so."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba

from depthpde.operators.kernels.team import share

_FLAGS: dict[str, Any] = {"nogil": True, "fastmath": {"contract", "nsz"}, "error_model": "numpy"}


def kernel(function: Callable[..., None], **flags: Any) -> Any:
    """Compile a kernel on its first call, and keep it on disk where a folder can be written.

    The kernel is a function of its arguments, of the first task and of the one after the last;
    what is compiled shares out all tasks: ``run(region, threads, portions, tasks, *arguments)``.
    """
    # a function of numba's own for each kernel, kept where and as long as the kernel's file is
    code = _share_out.__code__.replace(
        co_filename=function.__code__.co_filename,
        co_firstlineno=function.__code__.co_firstlineno,
    )
    work = numba.njit(**_FLAGS | flags)(function)
    run = FunctionType(code, {"share": share, "_part": work}, function.__name__)
    run.__module__, run.__qualname__ = function.__module__, function.__qualname__
    try:
        return numba.njit(cache=True, nogil=True)(run)
    except RuntimeError:  # neither the package's folder nor a cache of the user's can be written
        return numba.njit(nogil=True)(run)


def sum_kernel(function: Callable[..., None]) -> Any:
    """Compile a kernel whose sums may be taken in any order, so in several lanes at once."""
    return kernel(function, fastmath=_FLAGS["fastmath"] | {"reassoc"})


inline = numba.njit(inline="always", **_FLAGS)
"""Compile a part of kernels, written into each of them."""

part = numba.njit(**_FLAGS)
"""Compile a part of kernels on its own, which they call: for long parts, typed once for all."""

_part: Any = None  # each kernel sees itself under this name


def _share_out(region, threads, portions, tasks, *arguments):  # type: ignore[no-untyped-def]
    return share(_part, arguments, region, threads, portions, tasks)


_announced = threading.Event()


def announce(run: Any, arguments: tuple[Any, ...]) -> None:
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
        run(0, 1, 0, 0, *arguments)  # over no task: compiled, and nothing done
    finally:
        print(f"; {run.__name__!r} took {time.perf_counter() - start:.1f} s", file=sys.stderr)
