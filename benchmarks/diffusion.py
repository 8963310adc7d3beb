"""Speed of the diffusion kernels on this machine, as ratios measured in one run.

    python benchmarks/diffusion.py            print the table
    python benchmarks/diffusion.py --check    and exit 1 if a bar is missed

Every ratio is a median of interleaved pairs: a, b, a, b … so that a noisy neighbour hits both.
The tests of the kernels run first; numbers of wrong kernels are not printed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

import depthpde as dp

ROOT = Path(__file__).parents[1]
SHAPES = ((32, 1024, 64), (8, 2048, 256))
ROUNDS = 60


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    measured: float
    bar: float | None = None
    at_least: bool = False

    @property
    def passed(self) -> bool:
        """Whether the bar is met; a line without one always passes."""
        if self.bar is None:
            return True
        return self.measured >= self.bar if self.at_least else self.measured <= self.bar

    def __str__(self) -> str:
        wanted = "" if self.bar is None else f"{'≥' if self.at_least else '≤'} {self.bar:g}"
        mark = "" if self.bar is None else "ok" if self.passed else "MISSED"
        return f"{self.what:<64}{self.measured:>9.2f}   {wanted:<8}{mark}"


def clock(run: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(run: Callable[[], object], against: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Give the median time of one callable over that of the other, interleaved."""
    for _ in range(10):
        run(), against()
    pairs = [(clock(run), clock(against)) for _ in range(rounds)]
    return statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)


def there_and_back(forward: Callable[..., Tensor], *leaves: Tensor) -> Callable[[], object]:
    """Make a forward and backward pass with gradients of all leaves."""
    leaves = tuple(leaf.detach().clone().requires_grad_() for leaf in leaves)
    grad = torch.ones_like(forward(*leaves))
    return lambda: torch.autograd.grad(forward(*leaves), leaves, grad)


def conv(u: Tensor, kernel: Tensor) -> Tensor:
    """Convolve every feature by torch's own depthwise convolution."""
    return F.conv1d(u.mT, kernel, padding=1, groups=u.shape[2]).mT


def kernel_rows(shape: tuple[int, int, int]) -> list[Row]:
    """Measure the kernels on one field."""
    u, r = torch.randn(shape), torch.full((shape[2],), 0.2)
    valid = (
        torch.arange(shape[1])[None] < torch.linspace(shape[1] // 2, shape[1], shape[0])[:, None]
    )
    taps = torch.full((shape[2], 1, 3), 1 / 3)
    fused = there_and_back(dp.diffuse, u, r)
    stencil = there_and_back(lambda u, r: dp.diffuse(u, r, method="stencil"), u, r)
    name = "×".join(map(str, shape))
    return [
        Row(f"{name} forward / clone", ratio(lambda: dp.diffuse(u, r), u.clone), 2.0),
        Row(f"{name} forward + backward / clone", ratio(fused, u.clone), 5.0),
        Row(
            f"{name} 4 steps / 1 step",
            ratio(lambda: dp.diffuse(u, r, steps=4), lambda: dp.diffuse(u, r)),
            2.5,
        ),
        Row(f"{name} plain torch / fused, both ways", ratio(stencil, fused, 30), 5.0, True),
        Row(
            f"{name} depthwise conv1d / fused, both ways",
            ratio(there_and_back(conv, u, taps), fused, 30),
            5.0,
            True,
        ),
        Row(
            f"{name} masked / unmasked",
            ratio(lambda: dp.diffuse(u, r, valid_mask=valid), lambda: dp.diffuse(u, r)),
            1.3,
        ),
    ]


def growth() -> Row:
    """Fit time = c · length^p over 2^12 … 2^20 sites."""
    lengths = [2**k for k in range(12, 21, 2)]
    fields = {n: torch.randn(1, n, 16) for n in lengths}
    times: dict[int, list[float]] = {n: [] for n in lengths}
    for _ in range(30):
        for n, u in fields.items():
            # as many calls as make up the longest field, so that each is timed over the same work
            calls = min(16, lengths[-1] // n)
            times[n].append(
                clock(lambda u=u, c=calls: [dp.diffuse(u, 0.2) for _ in range(c)]) / calls
            )
    xs = [math.log(n) for n in lengths]
    ys = [math.log(statistics.median(times[n])) for n in lengths]
    return Row(
        "exponent of time against length, 2^12 … 2^20",
        statistics.linear_regression(xs, ys)[0],
        1.05,
    )


def saved_bytes(steps: int) -> int:
    """Count the bytes that autograd keeps."""
    total = []
    u, r = torch.randn(4, 64, 8, requires_grad=True), torch.full((8,), 0.2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (total.append(t.numel() * t.element_size()), t)[1], lambda t: t
    ):
        dp.diffuse(u, r, steps=steps)
    return sum(total)


def layer_rows(shape: tuple[int, int, int]) -> list[Row]:
    """Compare each layer with the time its own memory traffic would take at the speed of clone.

    Clone moves two fields. Adaptive forward: read u for the conductance, read u and write the
    result: 3 fields. Backward: the adjoint step moves 2, the gradient of the edges reads 2, that
    of the conductance moves 2, their sum 3: 9. Multi-scale, three scales of 1, 4 and 16 steps:
    a pass over memory each step or four (6 passes of 2), the difference and the mix (3 × 7), and
    the last sum 3.
    """
    u = torch.randn(shape)
    name = "×".join(map(str, shape))
    adaptive, multiscale = dp.AdaptiveDiffusion(shape[2]), dp.MultiscaleDiffusion(shape[2])
    plain = dp.Diffusion(shape[2])
    return [
        Row(f"{name} Diffusion layer / clone", ratio(lambda: plain(u), u.clone)),
        Row(
            f"{name} AdaptiveDiffusion / own traffic, forward",
            ratio(lambda: adaptive(u), u.clone) / (3 / 2),
            3.0,
        ),
        Row(
            f"{name} AdaptiveDiffusion / own traffic, both ways",
            ratio(there_and_back(adaptive, u), u.clone) / ((3 + 9) / 2),
            3.0,
        ),
        Row(
            f"{name} MultiscaleDiffusion / own traffic, forward",
            ratio(lambda: multiscale(u), u.clone) / ((12 + 21 + 3) / 2),
            3.0,
        ),
    ]


def alternating_rows() -> list[Row]:
    """Do torch and numba threads get in each other's way?

    After a matrix product everything that lives in the cache is slower, torch's own clone most of
    all: it is the yardstick.
    """
    u, a = torch.randn(SHAPES[0]), torch.randn(512, 512)

    def after(first: Callable[[], object], run: Callable[[], object]) -> float:
        for _ in range(5):
            first(), run()
        return statistics.median((first(), clock(run))[1] for _ in range(ROUNDS))

    def slowed(run: Callable[[], object], by: Callable[[], object]) -> float:
        return after(by, run) / after(lambda: None, run)

    product, diffuse = (lambda: a @ a), (lambda: dp.diffuse(u, 0.2))
    return [
        Row("matmul after diffuse / alone", slowed(product, diffuse)),
        Row("diffuse after matmul / alone", slowed(diffuse, product)),
        Row("clone after matmul / alone", slowed(u.clone, product)),
    ]


def table() -> list[Row]:
    """Measure everything."""
    rows = [row for shape in SHAPES for row in kernel_rows(shape)]
    rows.append(growth())
    rows.append(
        Row("bytes kept for backward, 8 steps / 1 step", saved_bytes(8) / saved_bytes(1), 1.0)
    )
    rows += [row for shape in SHAPES for row in layer_rows(shape)]
    return rows + alternating_rows()


def main() -> int:
    """Print the table; with --check, judge it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--skip-tests", action="store_true", help="the kernels' tests ran already")
    arguments = parser.parse_args()
    if not arguments.skip_tests:
        tests = ROOT / "tests" / "operators" / "diffusion" / "test_paths.py"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-k", "fused", str(tests)], cwd=ROOT
        )
        if done.returncode:
            print("the kernels' tests fail: no speed is printed", file=sys.stderr)
            return 1
    print(f"{torch.get_num_threads()} threads, float32, medians of {ROUNDS} interleaved pairs")
    rows = table()
    for row in rows:
        print(row)
    missed = [row for row in rows if not row.passed]
    print(f"{len(rows) - len(missed)} of {len(rows)} lines in order")
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
