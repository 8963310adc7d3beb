"""What diffusion at each position adds to a training step, measured in one run.

    python benchmarks/placement.py            print the table
    python benchmarks/placement.py --check    and exit 1 if a bar is missed

Every round runs the bare model and each placed one once, in a new order, so that a noisy
neighbour hits all alike. A neighbour only ever adds time, so a model's time is the lower quartile
of its rounds; the median of the paired ratios stands beside it, and on a quiet machine they agree.

Where other work keeps the cores busy, seconds say more about that work than about ours. Then
`--clock auto` counts processor seconds on one thread instead; the first line says which it took.
The tests of the positions run first; numbers of wrong models are not printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import numba
import torch
from torch.nn import functional as F

import depthpde as dp
from depthpde.models.block import Block
from depthpde.models.position import OPTIONS, ROUTES

ROOT = Path(__file__).parents[1]
BATCH, LENGTH = 4, 1024
SMALL = {"dim": 64, "blocks": 2, "heads": 2, "vocabulary": 257, "length": LENGTH, "classes": 2}
WARM_UP = 2


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    added: float
    """Per cent of the bare time, by lower quartiles: what the bar is for."""
    median: float
    """Per cent of the bare time, the median over rounds of the paired ratio."""
    bar: float | None

    @property
    def passed(self) -> bool:
        """Whether the bar is met; a line without one always passes."""
        return self.bar is None or self.added <= self.bar

    def __str__(self) -> str:
        wanted = "" if self.bar is None else f"≤ {self.bar:g} %"
        mark = "" if self.bar is None else "ok" if self.passed else "MISSED"
        return f"{self.what:<52}{self.added:>+8.1f} %{self.median:>+9.1f} %   {wanted:<8}{mark}"


Runs = dict[str, Callable[[], object]]


class Clock(StrEnum):
    """What is counted."""

    AUTO = "auto"
    """Seconds if the machine is quiet, else processor seconds."""
    WALL = "wall"
    """Seconds, on all cores."""
    CPU = "cpu"
    """Processor seconds, on one thread."""


def choose(clock: Clock) -> Clock:
    """Decide what `auto` means on this machine now, and set the threads."""
    cores = os.cpu_count() or 1
    if clock is Clock.AUTO:
        clock = Clock.WALL if os.getloadavg()[0] < 0.25 * cores else Clock.CPU
    threads = 1 if clock is Clock.CPU else cores
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    return clock


def compare(
    bare: Callable[[], object], runs: Runs, bars: dict[str, float], rounds: int, clock: Clock
) -> list[Row]:
    """Time every run against the bare one, interleaved."""
    now = time.process_time if clock is Clock.CPU else time.perf_counter
    everything = {"": bare, **runs}
    times: dict[str, list[float]] = {name: [] for name in everything}
    order = random.Random(0)
    for turn in range(WARM_UP + rounds):
        names = list(everything)
        order.shuffle(names)
        for name in names:
            start = now()
            everything[name]()
            if turn >= WARM_UP:
                times[name].append(now() - start)
    rows = []
    for name in runs:
        pairs = [a / b for a, b in zip(times[name], times[""], strict=True)]
        low, low_bare = (statistics.quantiles(times[each], n=4)[0] for each in (name, ""))
        added, median = low / low_bare, statistics.median(pairs)
        rows.append(Row(name, 100 * (added - 1), 100 * (median - 1), bars.get(name)))
    return rows


def training_step(config: dp.ModelConfig) -> Callable[[], object]:
    """Return one update of a small classifier on random tokens."""
    model = dp.Classifier(config, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(257, (BATCH, LENGTH), generator=torch.Generator().manual_seed(1))
    labels = torch.arange(BATCH) % 2

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(tokens), labels).backward()
        optimizer.step()

    return step


def positions(rounds: int, clock: Clock) -> list[Row]:
    """Measure every position, route and option in a training step of the small encoder."""
    runs: Runs = {}
    slow: Runs = {}
    bars: dict[str, float] = {}
    for position in dp.Position:
        for route in ROUTES[position]:
            for option in OPTIONS.get(position, (None,)):
                name = " · ".join(str(each) for each in (position, route, option) if each)
                placement = dp.Placement(position=position, route=route, option=option)
                step = training_step(dp.ModelConfig(**SMALL, positions=(placement,)))
                if option is dp.Option.WEIGHTS:  # It forms every pair of sites, so it has no bar.
                    slow[name] = step
                    continue
                runs[name] = step
                bars[name] = 2.0 if position is dp.Position.AFTER_EMBEDDING else 10.0
    bare = training_step(dp.ModelConfig(**SMALL))
    rows = compare(bare, runs, bars, rounds, clock)
    return rows + compare(bare, slow, {}, max(2, rounds // 5), clock)


def layers(rounds: int, clock: Clock) -> list[Row]:
    """Measure the other layers after the embedding, for comparison."""
    kinds = ("adaptive", "multiscale", "depthwise_conv", "exponential_average", "token_shift")
    runs = {
        f"after_embedding · {kind}": training_step(
            dp.ModelConfig(**SMALL, positions=("after_embedding",), layer=kind)
        )
        for kind in kinds
    }
    return compare(training_step(dp.ModelConfig(**SMALL)), runs, {}, rounds, clock)


def forward(config: dp.ModelConfig) -> Callable[[], object]:
    """Return one forward pass of one block over a long field."""
    torch.manual_seed(0)
    block = Block(config, 0).eval()
    u = torch.randn(1, 4096, config.dim)

    def run() -> None:
        with torch.no_grad():
            block(u)

    return run


def long_block(rounds: int, clock: Clock) -> list[Row]:
    """Measure four steps between blocks at length 4096 and 512 features."""
    sizes = {"dim": 512, "heads": 8}
    name = "4 steps between blocks, 1×4096×512, forward"
    placed = dp.ModelConfig(**sizes, positions=("between_blocks",), layer={"steps": 4})
    bare, bars = forward(dp.ModelConfig(**sizes)), {name: 10.0}
    return compare(bare, {name: forward(placed)}, bars, rounds, clock)


def tests_pass() -> bool:
    """Run the tests of what is measured."""
    files = [str(ROOT / "tests" / "models" / f"test_{name}.py") for name in ("block", "placed")]
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-x", *files]
    return subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode == 0


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 where a bar is missed under ``--check``, or where the tests fail."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each comparison")
    parser.add_argument("--clock", type=Clock, choices=list(Clock), default=Clock.AUTO)
    args = parser.parse_args(arguments)
    if not tests_pass():
        print("the tests of the positions fail: no speed is printed", file=sys.stderr)
        return 1
    clock, rounds = choose(args.clock), max(2, args.rounds)
    rows = positions(rounds, clock) + long_block(rounds // 2 + 1, clock)
    rows += layers(rounds // 2 + 1, clock)
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        unit = "processor seconds, one thread" if clock is Clock.CPU else "seconds, all cores"
        print(f"added to a training step of 2 blocks, {BATCH}×{LENGTH}×64 ({unit})")
        print(f"{'':52}{'lower quartile':>10}{'median':>8}")
        print(*rows, sep="\n")
    return int(args.check and not all(row.passed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
