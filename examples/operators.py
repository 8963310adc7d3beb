"""Operators alone: one spike diffused by every scheme, and what each does to a wave.

python examples/operators.py
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from matplotlib.figure import Figure

import depthpde as dp

OUT = Path("out/gallery")
SITES, RATIO, STEPS = 41, 0.25, 16


def main() -> None:
    """Diffuse, check what theory promises, draw."""
    spike = torch.zeros(1, SITES, 1, dtype=torch.float64)
    spike[0, SITES // 2] = 1.0
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for scheme, line in zip(dp.Scheme, ("-", "--", "-.", ":", (0, (3, 1, 1, 1))), strict=True):
        u = dp.diffuse(spike, RATIO, steps=STEPS, scheme=scheme)
        assert float(u.max()) <= 1.0, "no scheme leaves the range of its input at this ratio"
        if scheme is not dp.Scheme.UPWIND:  # what flows out on the right is gone
            assert math.isclose(float(u.sum()), 1.0, rel_tol=1e-9), "the mean is conserved"
        left.plot(u[0, :, 0], linestyle=line, label=scheme.value)
        print(f"{scheme.value:<15} highest site {float(u.max()):.4f}  sum {float(u.sum()):.6f}")
    omega = torch.linspace(0, math.pi, 200)
    for steps, line in ((1, "-"), (4, "--"), (16, ":")):
        layer = dp.Diffusion(1, steps=steps, initial_ratio=RATIO / 2)
        gain = layer.transfer_function(omega).detach().abs().flatten()
        right.plot(omega, gain, linestyle=line, label=f"{steps} steps")
    left.set(xlabel="site x", ylabel="u", title=f"a spike after {STEPS} steps, r = {RATIO:g}")
    right.set(xlabel="frequency ω", ylabel="|H(ω)|", title=f"what a wave keeps, r = {RATIO / 2:g}")
    left.legend()
    right.legend()
    OUT.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT / "operators.png", dpi=100)


if __name__ == "__main__":
    main()
