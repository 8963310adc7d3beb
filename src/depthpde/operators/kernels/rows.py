"""Rows of a field in the precision of computation, brought from its storage and sent back to it.

Kernels ask for what comes soon: the processor asks by itself for one or two streams that run
straight on, but for three of them too late, so that the adjoint of one step took twice as long.
"""

from __future__ import annotations

from depthpde.operators.kernels.compilation import inline
from depthpde.operators.kernels.lanes import fetch, get, load, put, store, width

AHEAD = 2048
"""Numbers of a field between what is computed and what is asked for."""


@inline
def bring(u, at, n, rows, to):  # type: ignore[no-untyped-def]
    """Bring n numbers of a field into a row that begins at `to`."""
    lanes = width(rows)
    for d in range(0, n - lanes + 1, lanes):
        fetch(u, at + d + AHEAD)
        store(rows, to + d, load(u, at + d))
    for d in range(n - n % lanes, n):
        rows[to + d] = get(u, at + d)


@inline
def send(rows, out, at, n):  # type: ignore[no-untyped-def]
    """Store the first n numbers of a row, rounded once."""
    lanes = width(rows)
    for d in range(0, n - lanes + 1, lanes):
        fetch(out, at + d + AHEAD)
        store(out, at + d, load(rows, d))
    for d in range(n - n % lanes, n):
        put(out, at + d, rows[d])
