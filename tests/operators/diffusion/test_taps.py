"""Equal steps as one filter: against repeated convolution, at every number of steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from depthpde.operators.diffusion.taps import heat_taps, mixed_taps, pad_taps


@pytest.mark.parametrize("steps", [1, 2, 3, 16, 64])
def test_are_the_powers_of_one_step(steps):
    for ratio in (0.0, 0.1, 0.25, 0.5):
        one, causal = np.array([ratio, 1 - 2 * ratio, ratio]), np.array([2 * ratio, 1 - 2 * ratio])
        wanted, past = np.ones(1), np.ones(1)
        for _ in range(steps):
            wanted, past = np.convolve(wanted, one), np.convolve(past, causal)
        r = torch.full((1, 1, 2), ratio, dtype=torch.float64)
        for got, expected in (
            (heat_taps(r, steps), wanted),
            (heat_taps(2 * r, steps, causal=True), past),
        ):
            assert got.shape == (1, len(expected), 2)
            np.testing.assert_allclose(got[0, :, 1], expected, rtol=0, atol=1e-15)


def test_are_symmetric_to_the_bit_and_sum_to_one():
    taps = heat_taps(torch.tensor([[[0.07, 0.25, 0.5]]]), 64)
    assert torch.equal(taps, taps.flip(1))
    torch.testing.assert_close(taps.sum(dim=1), torch.ones(1, 3, dtype=torch.float64))
    assert (taps >= 0).all()


def test_are_differentiable_at_the_ends_of_the_ratio_too():
    for causal in (False, True):
        for ratio in (0.0, 0.2, 0.5):
            r = torch.full((1, 1, 2), ratio, dtype=torch.float64, requires_grad=True)
            (slope,) = torch.autograd.grad(heat_taps(r, 4, causal=causal)[:, -1].sum(), r)
            assert torch.isfinite(slope).all()
    r = torch.full((1, 1, 2), 0.3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda r: heat_taps(r, 5), r)


def test_padding_leaves_the_filter_as_it_is():
    r = torch.full((1, 1, 1), 0.2)
    assert torch.equal(pad_taps(heat_taps(r, 2), 4)[:, 2:-2], heat_taps(r, 2))
    assert torch.equal(
        pad_taps(heat_taps(r, 2, causal=True), 4, causal=True)[:, 2:], heat_taps(r, 2, causal=True)
    )


@pytest.mark.parametrize("causal", [False, True])
def test_mixed_scales_are_the_weighted_sum_with_derivatives_of_first_and_second_order(causal):
    ratios = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([0.25, 0.75], dtype=torch.float64, requires_grad=True)
    wanted = sum(
        w * pad_taps(heat_taps(r[None, None], s, causal=causal), 3, causal=causal)
        for r, w, s in zip(ratios, weights, (1, 3), strict=True)
    )
    torch.testing.assert_close(mixed_taps(ratios, weights, (1, 3), causal), wanted)
    weigh = wanted.detach().sin()
    for got, expected in zip(  # without a second derivative to come, the slopes are a formula's
        torch.autograd.grad(mixed_taps(ratios, weights, (1, 3), causal), (ratios, weights), weigh),
        torch.autograd.grad(wanted, (ratios, weights), weigh),
        strict=True,
    ):
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-14)
    assert gradcheck(lambda r, w: mixed_taps(r, w, (1, 3), causal), (ratios, weights))
    assert gradgradcheck(lambda r, w: mixed_taps(r, w, (1, 3), causal), (ratios, weights))
