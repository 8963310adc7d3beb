"""Taps made by the small Triton kernel equal those made by torch, as do their gradients."""

from __future__ import annotations

import pytest
import torch

from depthpde.operators.diffusion import taps
from depthpde.operators.diffusion.device.taps import mixed_taps


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("steps", [(1,), (5, 2, 1), (64,)])
def test_equal_the_taps_of_torch_in_value_and_gradient(steps, causal):
    ratios = torch.rand(len(steps), 3, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        ratios *= 1.0 if causal else 0.5
        ratios[0, 0], ratios[0, 1] = 0.0, 1.0 if causal else 0.5  # 0⁰ = 1 at both ends
    weights = torch.rand(len(steps), dtype=torch.float64, requires_grad=True)
    leaves = (ratios, weights)
    got, wanted = (f(*leaves, steps, causal) for f in (mixed_taps, taps._mix))
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-14)
    along = torch.linspace(-1, 2, got.numel(), dtype=torch.float64).sin().reshape(got.shape)
    for create_graph in (False, True):
        found = torch.autograd.grad(
            (got * along).sum(), leaves, retain_graph=True, create_graph=create_graph
        )
        true = torch.autograd.grad((wanted * along).sum(), leaves, retain_graph=True)
        torch.testing.assert_close(found, true, rtol=1e-10, atol=1e-10)
