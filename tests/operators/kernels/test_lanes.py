"""Every 16-bit number goes in and out unchanged, and rounding is torch's own, to the bit."""

from __future__ import annotations

import numba
import pytest
import torch

from depthpde.operators.kernels.lanes import (
    FLOATS,
    exp2,
    get,
    largest,
    load,
    put,
    show,
    spread,
    store,
    total,
)


@numba.njit
def convert(source, out, n):
    step = FLOATS
    for at in range(0, n - step + 1, step):
        store(out, at, load(source, at))
    for at in range(n - n % step, n):
        put(out, at, get(source, at))


@numba.njit
def sum_of(source, one):
    return total(load(source, 0)), total(spread(source, one))


@numba.njit
def powers(source, other, out):
    for at in range(0, source.shape[0], FLOATS):
        store(out, at, exp2(largest(load(source, at), load(other, at))))


def every_number(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_stored_number_is_read_exactly_and_written_back(dtype):
    numbers, wide, back = every_number(dtype), torch.empty(2**16), torch.empty(2**16, dtype=dtype)
    convert(show(numbers), show(wide), 2**16)
    torch.testing.assert_close(wide, numbers.float(), rtol=0, atol=0, equal_nan=True)
    convert(show(wide), show(back), 2**16)
    torch.testing.assert_close(back, numbers, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_is_that_of_torch_ties_and_overflow_included(dtype):
    near = every_number(dtype).float()
    bits = near[torch.isfinite(near)].view(torch.int32)
    half = 1 << (15 if dtype is torch.bfloat16 else 12)
    wide = torch.cat([(bits + shift).view(torch.float32) for shift in (half - 1, half, half + 1)])
    wide = torch.cat((wide, torch.tensor([3.4e38, -3.4e38, 65519.9, 65520.0])))[: 2**17 + 5]
    got = torch.empty(len(wide), dtype=dtype)
    convert(show(wide), show(got), len(wide))
    torch.testing.assert_close(got, wide.to(dtype), rtol=0, atol=0, equal_nan=True)


def test_sums_all_lanes():
    numbers = torch.arange(float(FLOATS))
    got, ones = sum_of(show(numbers), 1.5)
    assert got == FLOATS * (FLOATS - 1) / 2
    assert ones == 1.5 * FLOATS


def test_powers_of_two_are_right_to_two_units_and_no_number_stays_none():
    exponents = torch.linspace(-140.0, 0.0, 1024 * FLOATS)
    exponents[:3] = torch.tensor([-torch.inf, torch.nan, -1e30])
    lowest, found = torch.full_like(exponents, -1e38), torch.empty_like(exponents)
    powers(show(exponents), show(lowest), show(found))
    wanted = torch.where(exponents <= -126.0, 0.0, torch.exp2(exponents.double())).float()
    wanted[1] = torch.nan
    torch.testing.assert_close(found, wanted, rtol=2 * 2**-23, atol=0, equal_nan=True)
    powers(show(lowest), show(exponents), show(found))  # largest, the other way round
    torch.testing.assert_close(found[3:], wanted[3:], rtol=2 * 2**-23, atol=0)
