"""GELU of rows to which a bias is added first, and its adjoint with the bias's gradient.

    out = y Φ(y)      dh = g (Φ(y) + y φ(y))      db = Σ_rows dh      y = h + b

    Φ(−z) = ½ P(t) e^(−z²/2) for z ≥ 0,    t = 1 / (1 + p z/√2)     (Abramowitz and Stegun 7.1.26)

The error of Φ is at most 7.5e-8, as that of a float32 near one is 6e-8; φ needs the same power.
"""

from __future__ import annotations

import numpy as np

from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.lanes import (
    above_zero,
    exp2,
    fma,
    largest,
    load,
    minus,
    over,
    plus,
    spread,
    store,
    times,
    width,
    zeros,
)

P = np.float32(0.3275911 / np.sqrt(2.0))
COEFFICIENTS = tuple(
    np.float32(each / 2.0)
    for each in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
)
HALF_LOG2E = np.float32(-0.5 / np.log(2.0))
DENSITY = np.float32(1.0 / np.sqrt(2.0 * np.pi))
ONE = np.float32(1.0)


@inline
def _normal(y, like):  # type: ignore[no-untyped-def]
    """Give Φ(y) and e^(−y²/2)."""
    one = spread(like, ONE)
    z = largest(y, minus(zeros(like), y))
    t = over(one, fma(spread(like, P), z, one))
    tail = spread(like, COEFFICIENTS[4])
    tail = fma(tail, t, spread(like, COEFFICIENTS[3]))
    tail = fma(tail, t, spread(like, COEFFICIENTS[2]))
    tail = fma(tail, t, spread(like, COEFFICIENTS[1]))
    tail = fma(tail, t, spread(like, COEFFICIENTS[0]))
    power = exp2(times(times(y, y), spread(like, HALF_LOG2E)))
    tail = times(times(tail, t), power)
    return above_zero(y, minus(one, tail), tail), power


@kernel
def gelu_rows(h, bias, out, rows, each, first, last):  # type: ignore[no-untyped-def]
    """Apply GELU to the `each` rows of a task."""
    n, dim = width(h), bias.shape[0]
    for r in range(first * each, min(last * each, rows)):
        for d in range(0, dim, n):
            y = plus(load(h, r * dim + d), load(bias, d))
            below, _ = _normal(y, h)
            store(out, r * dim + d, times(y, below))


@kernel
def gelu_rows_adjoint(h, bias, g, dh, db, rows, each, first, last):  # type: ignore[no-untyped-def]
    """Give dh, and the sum of db over the `each` rows of a task."""
    n, dim = width(h), bias.shape[0]
    for task in range(first, last):
        for r in range(task * each, min(task * each + each, rows)):
            for d in range(0, dim, n):
                y = plus(load(h, r * dim + d), load(bias, d))
                below, power = _normal(y, h)
                slope = fma(times(y, spread(h, DENSITY)), power, below)
                slope = times(load(g, r * dim + d), slope)
                store(dh, r * dim + d, slope)
                store(db, task * dim + d, plus(load(db, task * dim + d), slope))
