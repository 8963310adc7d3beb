"""What the Triton kernels do by count: one launch over the field whatever the number of steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from depthpde import diffuse
from depthpde.operators.diffusion.device import filters


@pytest.mark.parametrize("steps", [1, 4, 16])
def test_equal_steps_are_one_launch_each_way(steps, monkeypatch):
    launched = []
    for name in ("mirrored", "causal", "causal_adjoint"):
        kernel = getattr(filters, name)
        run = kernel.run
        monkeypatch.setattr(
            kernel, "run", lambda *a, run=run, name=name, **k: (launched.append(name), run(*a, **k))
        )
    u, r = torch.randn(1, 40, 4, requires_grad=True), torch.full((4,), 0.2, requires_grad=True)
    diffuse(u, r, steps=steps, method="triton").sum().backward()
    assert launched == ["mirrored", "mirrored"]
    diffuse(u, r, steps=steps, scheme="upwind", method="triton").sum().backward()
    assert launched[2:] == ["causal", "causal_adjoint"]


def test_more_steps_than_one_filter_has_are_several():
    u = torch.randn(1, 30, 2, dtype=torch.float64, requires_grad=True)
    r = torch.full((2,), 0.2, dtype=torch.float64, requires_grad=True)
    for scheme in ("explicit", "upwind"):
        out, wanted = (
            diffuse(u, r, steps=70, scheme=scheme, method=method)
            for method in ("triton", "stencil")
        )
        torch.testing.assert_close(out, wanted, rtol=0, atol=1e-12)
        got, true = (
            torch.autograd.grad((x * x.detach().cos()).sum(), (u, r)) for x in (out, wanted)
        )
        torch.testing.assert_close(got, true, rtol=1e-10, atol=1e-12)


def test_compiles_for_two_vendors_without_a_spill():
    kernel = "filter, backward"
    plan = Path(__file__).parents[4] / "benchmarks" / "gpu_plan.py"
    done = subprocess.run(
        [sys.executable, str(plan), "--check", "--only", "compiled", "--kernel", kernel],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert [f"{arch} {kernel}" in done.stdout for arch in ("sm_80", "sm_90", "gfx942")] == [
        True
    ] * 3
