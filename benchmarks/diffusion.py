"""Speed of the diffusion kernels on this machine, as ratios measured in one run.

    python benchmarks/diffusion.py            print the table
    python benchmarks/diffusion.py --check    and exit 1 if a bar is missed
    python benchmarks/diffusion.py --cpu      one thread, least CPU time: where other work runs too

Every ratio is a median of interleaved pairs: a, b, a, b … so that a noisy neighbour hits both.
Freed memory is kept, as `depthpde train` keeps it: else the system clears every page of every
result anew, the clone's as well, and that is what would be measured; two lines show how much.
The tests of the kernels run first; numbers of wrong kernels are not printed.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import depthpde as dp
from depthpde.training.memory import keep_freed_memory

Bars = tuple[float | None, float | None]
ROOT = Path(__file__).parents[1]
SHAPES = ((32, 1024, 64), (8, 2048, 256))
PRINTED = ((16, 196, 384), (4, 256, 64))
ROUNDS = 60
LAYERS: dict[str, tuple[Callable[[int], torch.nn.Module], dict[torch.dtype, Bars]]] = {
    "Diffusion": (dp.Diffusion, {torch.float32: (1.6, 3.5), torch.bfloat16: (2.5, 6.0)}),
    "Diffusion, 16 steps": (
        lambda dim: dp.Diffusion(dim, steps=16),
        {torch.float32: (5.0, 12.0), torch.bfloat16: (None, None)},
    ),
    "MultiscaleDiffusion": (
        dp.MultiscaleDiffusion,
        {torch.float32: (6.0, 16.0), torch.bfloat16: (10.0, 25.0)},
    ),
    "MultiscaleDiffusion, gated": (
        lambda dim: dp.MultiscaleDiffusion(dim, gated=True),
        {torch.float32: (None, None), torch.bfloat16: (None, None)},
    ),
    "LearnedStencil": (
        dp.LearnedStencil,
        {torch.float32: (6.0, 16.0), torch.bfloat16: (10.0, 25.0)},
    ),
    "AdaptiveDiffusion": (
        dp.AdaptiveDiffusion,
        {torch.float32: (3.0, 8.0), torch.bfloat16: (6.0, 15.0)},
    ),
    "ExponentialAverage": (
        dp.ExponentialAverage,
        {torch.float32: (None, None), torch.bfloat16: (None, None)},
    ),
}
"""Every layer with its bars: clones of the field forward, and forward and backward."""


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


@dataclass
class Measure:
    """What is taken of many times: the median; on a busy machine the least CPU time but one."""

    now: Callable[[], float] = time.perf_counter
    typical: Callable[[list[float]], float] = statistics.median


MEASURE = Measure()


def clock(run: Callable[[], object]) -> float:
    """Time one call."""
    start = MEASURE.now()
    run()
    return MEASURE.now() - start


def ratio(run: Callable[[], object], against: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Give the median time of one callable over that of the other, interleaved."""
    for _ in range(10):
        run(), against()
    pairs = [(clock(run), clock(against)) for _ in range(rounds)]
    return MEASURE.typical([a for a, _ in pairs]) / MEASURE.typical([b for _, b in pairs])


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


def layer_rows(shape: tuple[int, int, int], dtype: torch.dtype, judged: bool) -> list[Row]:
    """Measure every layer in clones of the same field: forward, and forward and backward."""
    u, name = torch.randn(shape).to(dtype), f"{'×'.join(map(str, shape))} {str(dtype)[6:]}"
    rows = []
    for what, (build, bars) in LAYERS.items():
        layer = build(shape[2])
        if getattr(layer, "gate", None) is not None:  # it reads the field, in the field's precision
            layer.to(dtype)
        forward, both = bars[dtype] if judged else (None, None)
        with torch.no_grad():
            alone = ratio(lambda layer=layer: layer(u), u.clone, 30)
        leaves = (u.detach().clone().requires_grad_(), *layer.parameters())
        grad = torch.ones_like(u)
        back = ratio(
            lambda f=layer, x=leaves, g=grad: torch.autograd.grad(f(x[0]), x, g), u.clone, 30
        )
        rows.append(Row(f"{name} {what} forward / clone", alone, forward))
        rows.append(Row(f"{name} {what} forward + backward / clone", back, both))
    return rows


def allocator_rows() -> list[Row]:
    """Measure one step where freed memory goes back to the system, as it does by default."""
    code = f"""
import sys; sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import torch, diffusion as benchmark
torch.set_num_threads({torch.get_num_threads()})
for row in benchmark.layer_rows((32, 1024, 64), torch.float32, False)[:2]:
    print(row.measured)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name = "32×1024×64 float32 Diffusion, memory not kept,"
    return [
        Row(f"{name} {way} / clone", float(found))
        for way, found in zip(("forward", "forward + backward"), done.stdout.split(), strict=True)
    ]


def plane_rows(dtype: torch.dtype) -> list[Row]:
    """Measure one step over an image in clones of it."""
    u, layer = torch.randn(32, 1024, 64).to(dtype), dp.Diffusion(64, grid=(32, 32))
    leaves = (u.detach().clone().requires_grad_(), *layer.parameters())
    grad, name = torch.ones_like(u), f"32×(32×32)×64 {str(dtype)[6:]} Diffusion over a grid"
    with torch.no_grad():
        alone = ratio(lambda: layer(u), u.clone, 30)
    both = ratio(lambda: torch.autograd.grad(layer(leaves[0]), leaves, grad), u.clone, 30)
    return [
        Row(f"{name} forward / clone", alone),
        Row(f"{name} forward + backward / clone", both),
    ]


def convolution_rows() -> list[Row]:
    """Measure a causal convolution against torch's, in the layout that hybrid models bring."""
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        x, taps = torch.randn(8, 2048, 256).to(dtype), torch.randn(256, 4).to(dtype)
        bias = torch.randn(256).to(dtype)
        name = f"8×2048×256 {str(dtype)[6:]} F.conv1d / causal_conv1d, both ways"
        for what, leaves, activation in (
            ("", (x, taps), None),
            (", bias", (x, taps, bias), None),
            (", bias, SiLU", (x, taps, bias), "silu"),
        ):
            ours = there_and_back(
                lambda x, w, *b, act=activation: dp.causal_conv1d(x.mT, w, *b, activation=act),
                *leaves,
            )
            theirs = there_and_back(
                lambda x, w, *b, act=activation: torch_conv(x, w, *b, activation=act), *leaves
            )
            rows.append(Row(name + what, ratio(theirs, ours, 10), 5.0, True))
    return rows


def torch_conv(x: Tensor, w: Tensor, b: Tensor | None = None, *, activation: str | None) -> Tensor:
    """Do the same by torch's own convolution."""
    out = F.conv1d(x.mT, w[:, None], b, padding=3, groups=x.shape[2])[..., : x.shape[1]]
    return out if activation is None else F.silu(out)


def hybrid_row() -> Row:
    """Measure a training step of a tiny LFM2 before and after the one line of docs/kernels.md."""
    from transformers import Lfm2Config, Lfm2ForCausalLM
    from transformers.models.lfm2 import modeling_lfm2

    config = Lfm2Config(
        vocab_size=256, hidden_size=256, intermediate_size=256, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=4, layer_types=["conv"] * 4,
    )  # fmt: skip
    model, tokens = Lfm2ForCausalLM(config), torch.randint(0, 256, (4, 1024))
    theirs = modeling_lfm2.causal_conv1d_fn

    def step(convolve: Callable[..., Tensor]) -> None:
        modeling_lfm2.causal_conv1d_fn = convolve
        model.zero_grad()
        model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()

    found = ratio(lambda: step(theirs), lambda: step(dp.causal_conv1d), 7)
    modeling_lfm2.causal_conv1d_fn = theirs
    return Row("training step of a tiny LFM2, torch's / our convolution", found, 1.0, True)


def first_use_row() -> Row:
    """Time the first forward and backward where nothing has been compiled yet."""
    code = """
import time, torch, depthpde as dp
layer, u = dp.Diffusion(64), torch.randn(4, 256, 64, requires_grad=True)
start = time.perf_counter()
layer(u).sum().backward()
print(time.perf_counter() - start)
"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env=os.environ | {"NUMBA_CACHE_DIR": folder},
        )  # fmt: skip
    return Row("first forward + backward of Diffusion, seconds", float(done.stdout), 3.0)


def decode_row() -> Row:
    """Measure what an inserted layer adds to one step of decoding."""
    from transformers import GPT2Config, GPT2LMHeadModel

    plain = GPT2LMHeadModel(
        GPT2Config(n_layer=4, n_embd=512, n_head=8, vocab_size=300, bos_token_id=0, eos_token_id=0)
    ).eval()
    inserted = copy.deepcopy(plain)
    dp.insert(inserted, "after_ffn", initial_ratio=0.1)
    times: dict[int, list[float]] = {0: [], 1: []}
    caches: list[Any] = [None, None]
    with torch.no_grad():
        for _ in range(150):
            for k, model in enumerate((plain, inserted)):
                start = time.perf_counter()
                out = model(torch.tensor([[5]]), past_key_values=caches[k], use_cache=True)
                times[k].append(time.perf_counter() - start)
                caches[k] = out.past_key_values
    added = statistics.median(times[1][20:]) - statistics.median(times[0][20:])
    return Row("decode step of GPT-2, added by an inserted layer, µs", 1e6 * added / 4, 50)


def peak_row() -> Row:
    """Count what multi-scale holds at most above input and output, both ways, in fields."""
    code = """
import re, torch, depthpde as dp
u = torch.randn(64, 1024, 256); layer = dp.MultiscaleDiffusion(256)
g = torch.ones_like(u); v = u.requires_grad_()
torch.autograd.grad(layer(v[:1, :64]), layer.parameters(), g[:1, :64])
def peak(): return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
out = layer(v); found = torch.autograd.grad(out, (v, *layer.parameters()), g)
size = u.numel() * 4
print((peak() - before) / size - 2)  # beyond the output and the field's gradient
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return Row("peak of multi-scale beyond input and outputs, fields", float(done.stdout), 1.2)


def call_rows() -> list[Row]:
    """Measure the microseconds of a call on next to nothing: what is between layer and kernel."""
    u, layer = torch.randn(1, 2, 64), dp.Diffusion(64)
    v, decode, one = (
        u.clone().requires_grad_(),
        dp.Diffusion(512, causal=True),
        torch.ones(1, 1, 512),
    )
    grad, leaves = torch.ones_like(u), (v, *layer.parameters())

    def spent(run: Callable[[], object]) -> float:
        for _ in range(50):
            run()
        return 1e6 * statistics.median(clock(run) for _ in range(400))

    with torch.no_grad():
        forward, step = spent(lambda: layer(u)), spent(lambda: decode(one))
    both = spent(lambda: torch.autograd.grad(layer(v), leaves, grad))
    return [
        Row("call of Diffusion on 1×2×64, µs", forward, 40),
        Row("call of Diffusion on 1×2×64, both ways, µs", both, 120),
        Row("one site of decoding, 1×1×512, µs", step, 50),
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


def table() -> Iterator[Row]:
    """Measure everything, line by line."""
    for shape in SHAPES:
        yield from kernel_rows(shape)
    yield growth()
    yield Row("bytes kept for backward, 8 steps / 1 step", saved_bytes(8) / saved_bytes(1), 1.0)
    yield from call_rows()
    yield decode_row()
    yield peak_row()
    yield first_use_row()
    yield from allocator_rows()
    for dtype in (torch.float32, torch.bfloat16):
        for shape in (*SHAPES, *PRINTED):
            yield from layer_rows(shape, dtype, judged=shape in SHAPES)
        yield from plane_rows(dtype)
    yield from convolution_rows()
    yield hybrid_row()
    yield from alternating_rows()


def main() -> int:
    """Print the table; with --check, judge it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--skip-tests", action="store_true", help="the kernels' tests ran already")
    parser.add_argument("--cpu", action="store_true", help="one thread, least CPU time but one")
    arguments = parser.parse_args()
    if arguments.cpu and arguments.check:
        parser.error("--check judges medians of a machine at rest; leave out --cpu")
    if arguments.cpu:
        torch.set_num_threads(1)
        MEASURE.now, MEASURE.typical = time.process_time, lambda times: sorted(times)[1]
    if not arguments.skip_tests:
        tests = ROOT / "tests" / "operators" / "diffusion" / "test_paths.py"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-k", "fused", str(tests)], cwd=ROOT
        )
        if done.returncode:
            print("the kernels' tests fail: no speed is printed", file=sys.stderr)
            return 1
    taken = "least CPU times but one" if arguments.cpu else "medians"
    print(f"{torch.get_num_threads()} threads, {taken} of {ROUNDS} interleaved pairs")
    kept = keep_freed_memory()
    print("freed memory is kept" if kept else "this system's allocator cannot keep freed memory")
    rows = []
    for row in table():
        print(row, flush=True)
        rows.append(row)
    missed = [row for row in rows if not row.passed]
    print(f"{len(rows) - len(missed)} of {len(rows)} lines in order")
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
