"""One independent random stream for each use, derived from one seed and the use's name."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from depthpde.errors import shown

if TYPE_CHECKING:
    import torch


def derive(seed: int, *names: str | int) -> int:
    """Derive a 63-bit seed from a seed and a path of names.

        derived = SHA-256(seed / name / name …) mod 2⁶³

    Streams of different names are independent for every practical purpose, and adding a
    new use never shifts the numbers of an old one.
    """
    digest = hashlib.sha256("/".join(str(part) for part in (seed, *names)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def generator(seed: int, *names: str | int) -> torch.Generator:
    """Return the CPU generator that belongs to this seed and this use.

    >>> same = torch.randn(3, generator=dp.generator(0, "init"))   # the same numbers every time

    Args:
        seed: The run's seed.
        *names: What the numbers are for, from the general to the special: ``"init", "block", 3``.
    """
    import torch

    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ValueError(f"`seed` must be a whole number, got {shown(seed)}")
    return torch.Generator().manual_seed(derive(seed, *names))
