"""Keep freed memory for the next update instead of giving it back to the system.

An update allocates and frees the same tensors again and again. The C library hands large ones
back at once, and the system clears every page before it gives it out anew: thousands of page
faults an update, a twentieth of its time at width 64.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST = 32 * 2**20
"""Bytes up to which a block is kept; glibc takes no more."""
KEPT = 2**30
"""Bytes of freed memory at the end of the heap that are kept."""


def keep_freed_memory() -> bool:
    """Ask the C library to keep what is freed; return whether it does.

    For the whole process and for good; no number changes. Only glibc can be asked, so this does
    nothing on other systems.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library, such as musl
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))
