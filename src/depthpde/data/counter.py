"""Random numbers that are a function of their index: the same whoever draws them, in any order.

    bits(key, n) = mix(key + n · G)        G = 2⁶⁴ / golden ratio, mix = the finaliser of SplitMix64

The n-th number of a stream needs no state, so work can be cut among any number of workers, and
an order of examples is the same in every version of every library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Function = TypeVar("Function", bound=Callable[..., Any])

_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def bits(key: int, count: int, *, start: int = 0) -> npt.NDArray[np.uint64]:
    """Return numbers start … start + count − 1 of the stream of a key, 64 random bits each."""
    z = np.uint64(key) + np.arange(start, start + count, dtype=np.uint64) * np.uint64(_GAMMA)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


def permutation(key: int, count: int) -> npt.NDArray[np.int64]:
    """Return a uniformly random order of 0 … count − 1: the ranks of one number for each.

    Two equal numbers among 64-bit ones keep their index order; the bias is below count² / 2⁶⁵.
    """
    return np.argsort(bits(key, count), kind="stable")


def kernel(function: Function) -> Function:
    """Compile a function with numba at its first call, cached on disk, free of the GIL."""
    import numba

    compiled: Function = numba.njit(cache=True, nogil=True)(function)
    return compiled
