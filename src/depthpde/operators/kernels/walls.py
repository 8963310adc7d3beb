"""Where a site's neighbours are, for compiled kernels: ends, cut edges, pieces between walls.

low ≤ i < high        the piece of a chain in which site i stands: no wall between its sites
"""

from __future__ import annotations

import numpy as np

from depthpde.operators.kernels.compilation import inline


@inline
def is_open(edges, row, e):  # type: ignore[no-untyped-def]
    """Tell whether edge e is open; `row` is the sequence's own, or the one that serves all."""
    return edges.shape[0] == 0 or edges[row, e] != 0


@inline
def row_of(edges, b):  # type: ignore[no-untyped-def]
    """Give the row of the edges that belongs to sequence b."""
    return np.int64(b) if edges.shape[0] > 1 else np.int64(0)


@inline
def sides(i, length, dilation, periodic, edges, row):  # type: ignore[no-untyped-def]
    """Give the two neighbours of a site and whether the edges to them are open."""
    low, high = i - dilation, i + dilation
    if periodic:
        return low % length, high % length, True, True
    left = low >= 0 and is_open(edges, row, low)
    right = high < length and is_open(edges, row, i)
    return max(low, 0), min(high, length - 1), left, right


@inline
def open_run(i, stop, longest, length, dilation, edges, row):  # type: ignore[no-untyped-def]
    """Count the sites from i on whose two edges are open and do not wrap around."""
    if i < dilation:
        return 0
    stop = min(stop, length - dilation, i + longest)
    if edges.shape[0] == 0:
        return max(0, stop - i)
    n = 0
    while i + n < stop and is_open(edges, row, i + n) and is_open(edges, row, i + n - dilation):
        n += 1
    return n


@inline
def piece(i, behind, ahead, length, edges, row, periodic):  # type: ignore[no-untyped-def]
    """Give [low, high), the piece of site i; a wall farther than asked for counts as just there.

    Args: `behind` and `ahead` say how many sites away a wall still matters.
    """
    if periodic:
        return 0, length
    first, last = max(0, i - behind), min(length, i + ahead)
    if edges.shape[0] == 0:
        return first, last
    low, high = i, i + 1
    while low > first and edges[row, low - 1] != 0:
        low -= 1
    while high < last and edges[row, high - 1] != 0:
        high += 1
    return low, high
