"""Draws of the counter-based stream inside compiled kernels: the same numbers as ``counter``."""

from __future__ import annotations

import numpy as np

from depthpde.data.counter import kernel


@kernel
def mix(key: np.uint64, index: np.uint64) -> np.uint64:
    """Return 64 random bits: number ``index`` of the stream of ``key``."""
    z = key + index * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def uniform(key: np.uint64, index: np.uint64) -> float:
    """Return a number uniform in [0, 1) with 53 random bits."""
    return float(mix(key, index) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def below(key: np.uint64, index: np.uint64, bound: int) -> int:
    """Return a whole number uniform in 0 … bound − 1, with a bias below bound / 2³²."""
    return int(((mix(key, index) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
