"""A product of tiles is the product of matrices, and a tile turned twice is itself."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import torch

from depthpde.operators.kernels.lanes import FLOATS, show, spread
from depthpde.operators.kernels.tiles import (
    LINES,
    ROWS,
    add_product,
    exp2_tile,
    largest_row,
    load_tile,
    same_rows,
    store_tile,
    times_tile,
    turned,
)

WIDE = 2 * FLOATS


@numba.njit
def two_registers(a, b, c, row, column, count):
    tile = load_tile(c, 0, WIDE, ROWS, 2)
    store_tile(c, 0, WIDE, add_product(tile, a, 0, row, column, b, 0, WIDE, count))


@numba.njit
def one_register(a, b, c, row, column, count):
    tile = load_tile(c, 0, FLOATS, LINES, 1)
    store_tile(c, 0, FLOATS, add_product(tile, a, 0, row, column, b, 0, FLOATS, count))


@numba.njit
def number_by_number(a, b, c):
    x, y = load_tile(a, 0, WIDE, ROWS, 2), load_tile(b, 0, WIDE, ROWS, 2)
    store_tile(c, 0, WIDE, times_tile(exp2_tile(x), y))


@numba.njit
def tops(a, c, floor):
    low = spread(a, floor)
    first, second = largest_row(load_tile(a, 0, WIDE, ROWS, 2), low, low)
    store_tile(c, 0, WIDE, same_rows(ROWS, first, second))


@numba.njit
def turn(a, c):
    store_tile(c, 0, FLOATS, turned(load_tile(a, 0, FLOATS, FLOATS, 1)))


def _draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("count", [0, 1, 16, 37])
@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize(
    ("product", "rows", "lanes"), [(two_registers, ROWS, WIDE), (one_register, LINES, FLOATS)]
)
def test_a_product_is_added_whatever_way_its_left_side_lies(product, rows, lanes, by_rows, count):
    a, b, c = _draw(rows, 40), _draw(40, lanes, seed=1), _draw(rows, lanes, seed=2)
    wanted = c.double() + a[:, :count].double() @ b[:count].double()
    lies = a if by_rows else a.T.contiguous()
    product(show(lies), show(b), show(c), *((40, 1) if by_rows else (1, rows)), count)
    torch.testing.assert_close(c.double(), wanted, rtol=0, atol=1e-5)


def test_powers_products_and_largest_are_taken_number_by_number():
    a, b, c = _draw(ROWS, WIDE), _draw(ROWS, WIDE, seed=1), torch.empty(ROWS, WIDE)
    number_by_number(show(a), show(b), show(c))
    torch.testing.assert_close(c, torch.exp2(a) * b, rtol=1e-6, atol=1e-6)
    tops(show(a), show(c), np.float32(0.5))
    assert torch.equal(c, a.amax(0).clamp_min(0.5).expand(ROWS, -1))


def test_rows_are_columns_after_a_turn():
    a, c = _draw(FLOATS, FLOATS), torch.empty(FLOATS, FLOATS)
    turn(show(a), show(c))
    assert torch.equal(c, a.T)
