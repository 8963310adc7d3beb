"""``depthpde bench``: how fast diffusion is on this machine, as ratios to a copy of the field."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

SUMMARY = "this machine's kernel table, as ratios measured in one run"
EXAMPLES = """examples:
  depthpde bench
  depthpde bench --shape 8 4096 512 --steps 1 4 --json
"""


MOST_ROUNDS = 10_000
"""More would take hours and move the median by nothing."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "--shape",
        nargs=3,
        type=int,
        metavar=("BATCH", "LENGTH", "DIM"),
        default=(32, 1024, 64),
        help="the field (default: 32 1024 64)",
    )
    parser.add_argument(
        "--steps", nargs="+", type=int, default=[1, 4], help="PDE steps of a call (default: 1 4)"
    )
    parser.add_argument(
        "--rounds", type=int, default=40, help="interleaved pairs; their median is printed"
    )
    parser.add_argument("--json", action="store_true", help="print plain JSON")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print a table: every number is a time over that of ``u.clone()``."""
    from depthpde.errors import check_positive, check_range

    for name in ("shape", "steps"):
        for each in getattr(arguments, name):
            check_positive(f"--{name}", each)
    check_range("--rounds", check_positive("--rounds", arguments.rounds), 1, MOST_ROUNDS)
    rows = measure(tuple(arguments.shape), arguments.steps, arguments.rounds)
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    shape = "×".join(str(each) for each in arguments.shape)
    print(f"{shape}, float32; times as multiples of one copy of the field (median, interleaved)")
    print(f"{'':<34}{'forward':>10}{'+ backward':>12}")
    for row in rows:
        print(f"{row['what']:<34}{row['forward']:>10.2f}{row['both']:>12.2f}")
    return 0


def measure(shape: tuple[int, ...], steps: list[int], rounds: int) -> list[dict[str, float | str]]:
    """Time the automatic path, plain torch and a depthwise convolution against a copy."""
    import torch
    from torch.nn import functional as F

    from depthpde.operators.diffusion.dispatch import Method, diffuse

    generator = torch.Generator().manual_seed(0)
    u = torch.randn(shape, generator=generator)
    ratio = 0.25 * torch.rand(shape[2], generator=generator)
    kernel = torch.randn(shape[2], 1, 3, generator=generator)
    runs: dict[str, tuple[Callable[..., Tensor], Tensor]] = {}
    for count in steps:
        for method in (Method.AUTO, Method.STENCIL):
            words = "diffuse" if method is Method.AUTO else "the same in plain torch"
            runs[f"{words}, {count} step{'s' * (count > 1)}"] = (
                lambda v, r, s=count, m=method: diffuse(v, r, steps=s, method=m),
                ratio,
            )
    runs["depthwise convolution of width 3"] = (
        lambda v, k: F.conv1d(v.mT, k, padding=1, groups=v.shape[2]).mT,
        kernel,
    )
    return [
        {
            "what": words,
            "forward": _ratio(lambda f=f, w=w: f(u, w), u, rounds),  # type: ignore[misc]
            "both": _ratio(_there_and_back(f, u, w), u, rounds),
        }
        for words, (f, w) in runs.items()
    ]


def _there_and_back(run: Callable[..., Tensor], u: Tensor, weight: Tensor) -> Callable[[], object]:
    import torch

    leaves = (u.clone().requires_grad_(), weight.clone().requires_grad_())
    grad = torch.ones_like(u)
    return lambda: torch.autograd.grad(run(*leaves), leaves, grad)


def _ratio(run: Callable[[], object], u: Tensor, rounds: int) -> float:
    """Return the median time of a call over that of a copy, taken in turns."""
    from statistics import median
    from time import perf_counter

    for _ in range(3):
        run(), u.clone()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, into in zip((run, u.clone), times, strict=True):
            start = perf_counter()
            call()
            into.append(perf_counter() - start)
    return median(times[0]) / median(times[1])
