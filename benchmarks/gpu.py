"""Speed of the layers on a GPU, in clones of the same field: for whoever has one.

    python benchmarks/gpu.py                 judge the values, print the table, write gpu.json
    python benchmarks/gpu.py --device cpu    a trial of this script, where there is no GPU

Nobody has run the Triton kernels on hardware so far: send `gpu.json` back in an issue. Values and
gradients are compared with plain torch in float64 first; times of wrong kernels are not printed.
Every time is a median of interleaved calls.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import depthpde as dp

SHAPES = ((32, 1024, 64), (8, 2048, 256), (16, 4096, 1024))
LAYERS: dict[str, Callable[[int], torch.nn.Module]] = {
    "Diffusion": dp.Diffusion,
    "Diffusion, 4 steps": lambda dim: dp.Diffusion(dim, steps=4),
    "Diffusion, 16 steps": lambda dim: dp.Diffusion(dim, steps=16),
    "Diffusion, 16 causal steps": lambda dim: dp.Diffusion(dim, steps=16, causal=True),
    "Diffusion, backward Euler": lambda dim: dp.Diffusion(dim, scheme="backward_euler"),
    "Diffusion, exact": lambda dim: dp.Diffusion(dim, scheme="exact"),
    "MultiscaleDiffusion": dp.MultiscaleDiffusion,
    "LearnedStencil, symmetric": lambda dim: dp.LearnedStencil(dim, symmetric=True),
    "AdaptiveDiffusion": dp.AdaptiveDiffusion,
}
BLOCKS = ((32, 64), (64, 32), (64, 64), (128, 32), (128, 64), (256, 16), (256, 32))
"""Sites and features of a program that are tried for the filter of 33 taps."""


def clock(run: Callable[[], object], device: str) -> float:
    """Time one call in milliseconds, by the device's own clock where it has one."""
    if device == "cpu":
        start = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - start)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    run()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop)


def ratio(run: Callable[[], object], against: Callable[[], object], device: str) -> float:
    """Give the median time of one callable over that of the other, interleaved."""
    for _ in range(5):
        run(), against()
    pairs = [(clock(run, device), clock(against, device)) for _ in range(30)]
    return statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)


def both_ways(layer: torch.nn.Module, u: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Give the output and every gradient of a fixed weighting of it."""
    leaves = (u.detach().requires_grad_(), *layer.parameters())
    out = layer(leaves[0])
    weights = torch.linspace(-3, 5, out.numel(), device=u.device, dtype=u.dtype).sin()
    return out, *torch.autograd.grad((out * weights.reshape(out.shape)).sum(), leaves)


def worst_error(name: str, device: str) -> float:
    """Compare a layer on the device with itself on the CPU in float64, relative to each size."""
    layer = LAYERS[name](48).to(device)
    u = torch.randn(3, 200, 48, device=device)
    got = both_ways(layer, u)
    wanted = both_ways(layer.double().cpu(), u.double().cpu())
    return max(
        float((a.double().cpu() - b).detach().abs().max() / b.detach().abs().max().clamp(min=1e-6))
        for a, b in zip(got, wanted, strict=True)
    )


def layer_rows(
    shape: tuple[int, int, int], dtype: torch.dtype, device: str
) -> list[dict[str, Any]]:
    """Measure every layer on one field: forward, and forward and backward, in clones."""
    rows, u = [], torch.randn(shape, device=device).to(dtype)
    grad = torch.ones_like(u)
    for name, build in LAYERS.items():
        layer = build(shape[2]).to(device)
        leaves = (u.detach().clone().requires_grad_(), *layer.parameters())
        with torch.no_grad():
            forward = ratio(lambda f=layer: f(u), u.clone, device)
        both = ratio(
            lambda f=layer, x=leaves: torch.autograd.grad(f(x[0]), x, grad), u.clone, device
        )
        rows.append(
            {
                "layer": name,
                "shape": shape,
                "dtype": str(dtype)[6:],
                "forward": forward,
                "both": both,
            }
        )
        print(f"{'×'.join(map(str, shape)):<16}{rows[-1]['dtype']:<10}{name:<30}"
              f"{forward:>8.2f}{both:>8.2f}", flush=True)  # fmt: skip
    return rows


def block_rows(device: str) -> list[dict[str, Any]]:
    """Try other blocks for 16 steps, to improve the table in `device/blocks.py`."""
    from depthpde.operators.diffusion.device import blocks

    layer, u = LAYERS["Diffusion, 16 steps"](256).to(device), torch.randn(8, 2048, 256).to(device)
    kept, rows = dict(blocks.BLOCKS), []
    for block in BLOCKS:
        blocks.BLOCKS[16] = block
        with torch.no_grad():
            rows.append({"block": block, "forward": ratio(lambda: layer(u), u.clone, device)})
        print(f"block of {block[0]} sites × {block[1]} features: {rows[-1]['forward']:.2f} clones")
    blocks.BLOCKS.update(kept)
    return rows


def main() -> int:
    """Judge, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), help="the file to send back")
    parser.add_argument("--quick", action="store_true", help="one small shape")
    arguments = parser.parse_args()
    device = arguments.device
    if device == "cuda" and not torch.cuda.is_available():
        print(
            "wanted a CUDA or ROCm device, found none; use --device cpu for a trial of this "
            "script, or benchmarks/gpu_plan.py for what is known without one",
            file=sys.stderr,
        )
        return 2
    errors = {name: worst_error(name, device) for name in LAYERS}
    for name, error in errors.items():
        print(f"{name:<30} differs from float64 by {error:.1e}")
    if max(errors.values()) > 1e-3:
        print("values differ by more than 1e-3: no speed is printed", file=sys.stderr)
        return 1
    print(f"{'shape':<16}{'dtype':<10}{'layer, in clones':<30}{'forward':>8}{'both':>8}")
    shapes = ((4, 256, 64),) if arguments.quick else SHAPES
    rows = [
        row
        for shape in shapes
        for dtype in (torch.float32, torch.bfloat16)
        for row in layer_rows(shape, dtype, device)
    ]
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    found = {"device": name, "torch": torch.__version__, "errors": errors, "layers": rows}
    if device == "cuda":
        found["blocks"] = block_rows(device)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {arguments.out}: please send it back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
