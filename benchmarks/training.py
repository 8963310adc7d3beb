"""What training costs beside the model itself, as ratios measured in one run.

    python benchmarks/training.py            print the table
    python benchmarks/training.py --check    and exit 1 if a bar is missed

    update     an update at width 64 against one with torch's own dropout and attention and a mask
               of no padding
    whole      the same over a run of updates and evaluations, in tokens a second
    step       an update of `train` against the same update in a loop written by hand
    buckets    real tokens a second with length buckets against padding to the longest
    workers    a grid by two workers of one thread each against one
    ray        a grid of short runs on a local Ray cluster against a pool of two

Both sides of a ratio see the same batches and take turns, so that a noisy neighbour hits both.
It only ever adds time, so an update's time is the least of its rounds. Where other work keeps the
cores busy `--clock auto` counts processor seconds for the first four, and says so; the last two
are about several processes and always count seconds: run them on a quiet machine.
The tests of the loop run first; numbers of a wrong loop are not printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numba
import torch
from torch.nn import functional as F

import depthpde as dp
from depthpde.data.batching import Part
from depthpde.layers import stabilizer
from depthpde.operators import fused_attention, fused_gelu, linear_map
from depthpde.training import evaluate as evaluation

ROOT = Path(__file__).parents[1]
UPDATES = 25
RUNS = 6
STAND_IN = "pathfinder-mini"
"""Images of the shape of image-mini's, generated: no file is needed to measure a speed."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    value: float
    unit: str
    bar: float
    least: bool
    """Whether the bar is a lower bound."""
    detail: str

    @property
    def passed(self) -> bool:
        """Whether the bar is met."""
        return self.value >= self.bar if self.least else self.value <= self.bar

    def __str__(self) -> str:
        wanted = f"{'≥' if self.least else '≤'} {self.bar:g}{self.unit}"
        mark = "ok" if self.passed else "MISSED"
        return f"{self.what:<10}{self.value:>7.2f}{self.unit:<3}{wanted:<9}{mark:<8}{self.detail}"


class Clock(StrEnum):
    """What is counted."""

    AUTO = "auto"
    """Seconds if the machine is quiet, else processor seconds."""
    WALL = "wall"
    """Seconds."""
    CPU = "cpu"
    """Processor seconds."""


Now = Callable[[], float]


def update(rounds: int, now: Now, prepared: Path) -> Row:
    """Compare an update of image-mini at width 64 with what torch alone makes of it."""
    run = _wide(updates=6, evaluate_every=6)
    split = dp.load(STAND_IN, "train", out=prepared)
    least = {name: [float("inf")] * 6 for name in ("now", "plain")}
    for turn in range(rounds + 1):
        for name in sorted(least, reverse=turn % 2 == 1):
            with _plain() if name == "plain" else nullcontext():
                times = _ours(run, split, now)
            if turn:
                least[name] = [min(pair) for pair in zip(least[name], times, strict=True)]
    ours, plain = (sum(least[name][1:]) / 5 for name in ("now", "plain"))
    tokens = run.training.batch_size * 256
    detail = (
        f"{1000 * ours:.0f} ms against {1000 * plain:.0f} ms an update, {tokens / ours:,.0f} "
        f"against {tokens / plain:,.0f} tokens/s, dropout {run.model.dropout:g}"
    )
    return Row("update", plain / ours, "×", 1.5, True, detail)


def whole(rounds: int, now: Now, prepared: Path) -> Row:
    """Compare a short run with its evaluations, from the first update to the last."""
    run = _wide(updates=8, evaluate_every=4)
    train_split, held_out = (
        dp.load(STAND_IN, each, out=prepared) for each in ("train", "validation")
    )
    spent: dict[str, list[float]] = {"now": [], "plain": []}
    for turn in range(max(3, rounds // 3)):
        for name in sorted(spent, reverse=turn % 2 == 1):
            model = run.build()
            with _plain() if name == "plain" else nullcontext():
                before = now()
                dp.train(model, train_split, run.training, validation=held_out)
                spent[name].append(now() - before)
    ours, plain = min(spent["now"]), min(spent["plain"])
    detail = f"{ours:.2f} s against {plain:.2f} s for 8 updates and two looks at {len(held_out)}"
    return Row("whole", plain / ours, "×", 1.3, True, detail)


def _wide(*, updates: int, evaluate_every: int) -> dp.RunConfig:
    model = {"dim": 64, "heads": 4, "hidden": 128, "dropout": 0.1}
    training = {"updates": updates, "evaluate_every": evaluate_every, "warmup": 1, "batch_size": 32}
    settings = {f"model.{key}": value for key, value in model.items()}
    return dp.build_run(
        "image-mini", settings=settings | {f"training.{key}": v for key, v in training.items()}
    )


@contextmanager
def _plain() -> Iterator[None]:
    """Train as the package did before: the reference that the tests compare with as well."""
    with (
        patch.object(stabilizer, "dropout", F.dropout),
        patch.object(fused_attention, "supports", lambda *_, **__: False),
        patch.object(fused_gelu, "supports", lambda *_: False),
        patch.object(linear_map, "FASTER", False),
        patch.object(evaluation, "_unless_full", lambda given: given),
    ):
        yield


def step(rounds: int, now: Now, prepared: Path) -> Row:
    """Compare an update of ours with one by hand, batch by batch."""
    run = dp.build_run(
        "listops-mini",
        settings={"model.positions": ["after_embedding"], "training.updates": UPDATES},
    )
    split = dp.load("listops-mini", "train", out=prepared)
    sides = {"ours": _ours, "by hand": _by_hand}
    least = {name: [float("inf")] * UPDATES for name in sides}
    for turn in range(rounds + 1):
        for name in sorted(sides, reverse=turn % 2 == 1):
            times = list(sides[name](run, split, now))
            if turn:
                least[name] = [min(pair) for pair in zip(least[name], times, strict=True)]
    # The first update of a session also allocates what the others reuse.
    ours, by_hand = (sum(least[name][1:]) / (UPDATES - 1) for name in sides)
    detail = f"{1000 * ours:.2f} ms against {1000 * by_hand:.2f} ms an update, 2 blocks, width 32"
    return Row("step", ours / by_hand, "×", 1.05, False, detail)


def _ours(run: dp.RunConfig, split: dp.Split, now: Now) -> list[float]:
    stamps = []
    model = run.build()
    began = now()
    dp.train(model, split, run.training, callback=lambda history, point: stamps.append(now()))
    return [after - before for before, after in zip([began, *stamps], stamps, strict=False)]


def _by_hand(run: dp.RunConfig, split: dp.Split, now: Now) -> Iterator[float]:
    """Train as one writes it down: no resume, no record, no several processes."""
    config, model = run.training, run.build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, fused=True)
    before = now()
    batches = dp.Batches(split, config.batch_size, seed=config.seed).stream()
    for _ in range(config.updates):
        _, batch = next(batches)
        optimizer.zero_grad()
        logits = model(batch.tokens, batch.valid_mask)
        loss = F.cross_entropy(logits, batch.labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip or 1.0)
        optimizer.step()
        loss.item()
        (logits.argmax(dim=-1) == batch.labels).sum().item()
        after = now()
        yield after - before
        before = after


def buckets(rounds: int, now: Now, prepared: Path) -> Row:
    """Compare batches of similar lengths with batches padded to the longest."""
    split = dp.load("listops", "train", out=prepared)
    config = dp.ModelConfig(dim=64, blocks=2, heads=2, hidden=128)
    model = dp.Classifier(config, dp.tasks["listops"], generator=torch.Generator().manual_seed(0))
    sides = {name: dp.Batches(each, 4) for name, each in _paddings(split).items()}
    chosen = {name: _spread(each.plan(0), 6) for name, each in sides.items()}
    spent = {name: [float("inf")] * 6 for name in sides}
    for turn in range(max(3, rounds // 3)):
        for name in sorted(sides, reverse=turn % 2 == 1):
            for index, part in enumerate(chosen[name]):
                batch = sides[name].fill(part)
                before = now()
                F.cross_entropy(model(batch.tokens, batch.valid_mask), batch.labels).backward()
                spent[name][index] = min(spent[name][index], now() - before)
    speed = {
        name: sum(int(sides[name].fill(part).valid_mask.sum()) for part in chosen[name])
        / sum(spent[name])
        for name in sides
    }
    waste = [100 * sides[name].waste() for name in sides]
    detail = (
        f"{speed['buckets']:,.0f} against {speed['longest']:,.0f} real tokens/s; padding "
        f"{waste[0]:.0f} % against {waste[1]:.0f} % of all"
    )
    return Row("buckets", speed["buckets"] / speed["longest"], "×", 1.7, True, detail)


def _paddings(split: dp.Split) -> dict[str, dp.Split]:
    return {"buckets": split, "longest": replace(split, padding=split.length)}


def _spread(plan: list[Part], count: int) -> list[Part]:
    """Take batches of every width: the middle ones of as many equal groups."""
    whole = sorted((part for part in plan if len(part.indices) == 4), key=lambda part: part.width)
    return [whole[(2 * index + 1) * len(whole) // (2 * count)] for index in range(count)]


def workers(prepared: Path) -> Row:
    """Compare a grid by two workers with the same grid by one."""
    runs = _grid(RUNS, updates=400)
    spent: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for count, times in spent.items():
            times.append(_sweep(runs, lambda f, n=count: dp.Pool(f, n, threads=1), prepared))
    one, two = (median(times) for times in spent.values())
    detail = f"{two:.0f} s against {one:.0f} s for {RUNS} runs, one thread a worker, median of 3"
    return Row("workers", two / one, "×", 0.6, False, detail)


def ray(prepared: Path) -> Row:
    """Tell what Ray adds to a grid of short runs, its start and end included."""
    runs = _grid(4, updates=20)
    pool = _sweep(runs, lambda folders: dp.Pool(folders, 2, threads=1), prepared)
    there = _sweep(runs, lambda folders: dp.RayCluster(folders, "auto", slots=2), prepared)
    detail = f"{there:.0f} s against {pool:.0f} s for {len(runs)} runs of 20 updates"
    return Row("ray adds", there - pool, " s", 15.0, False, detail)


def _grid(count: int, *, updates: int) -> list[dp.RunConfig]:
    settings = {"training.updates": updates, "training.evaluate_every": updates}
    return [dp.build_run("listops-mini", settings=settings | {"seed": n}) for n in range(count)]


def _sweep(
    runs: list[dp.RunConfig], place: Callable[[dp.Folders], dp.Executor], prepared: Path
) -> float:
    with TemporaryDirectory() as folder:
        folders = dp.Folders(Path(folder), prepared=prepared)
        began = time.perf_counter()
        outcome = dp.sweep(runs, place(folders), folders.results)
        seconds = time.perf_counter() - began
    if outcome.recorded != len(runs):
        raise RuntimeError(f"only {outcome.recorded} of {len(runs)} runs ended: {outcome.failed}")
    return seconds


def choose(clock: Clock) -> Clock:
    """Decide what `auto` means on this machine now; one thread in either case."""
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    quiet = os.getloadavg()[0] < 0.25 * (os.cpu_count() or 1)
    return (Clock.WALL if quiet else Clock.CPU) if clock is Clock.AUTO else clock


def tests_pass() -> bool:
    """Run the tests of what is measured."""
    files = [str(ROOT / "tests" / "training" / f"test_{name}.py") for name in ("loop", "evaluate")]
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-x", *files]
    command += ["-k", "not compiled"]
    return subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode == 0


def measure(chosen: list[str], rounds: int, clock: Clock, prepared: Path) -> Iterator[Row]:
    """Prepare small versions of the tasks, and measure what was asked for."""
    small = {"train": 2000, "validation": 200, "test": 400}
    tasks = {"update": STAND_IN, "whole": STAND_IN, "buckets": "listops"}
    for task in {tasks.get(name, "listops-mini") for name in chosen}:
        dp.prepare(replace(dp.tasks[task], splits=small), out=prepared)
    now = time.process_time if clock is Clock.CPU else time.perf_counter
    for name in chosen:
        if name in ("update", "whole", "step", "buckets"):
            by_clock = {"update": update, "whole": whole, "step": step, "buckets": buckets}
            yield by_clock[name](rounds, now, prepared)
        else:
            yield {"workers": workers, "ray": ray}[name](prepared)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 where a bar is missed under ``--check``, or where the tests fail."""
    names = ["update", "whole", "step", "buckets", "workers", "ray"]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--only", action="append", choices=names, help="may be repeated")
    parser.add_argument("--rounds", type=int, default=12, help="rounds of the first four")
    parser.add_argument("--clock", type=Clock, choices=list(Clock), default=Clock.AUTO)
    args = parser.parse_args(arguments)
    if not tests_pass():
        print("the tests of the loop fail: no speed is printed", file=sys.stderr)
        return 1
    clock = choose(args.clock)
    with TemporaryDirectory() as folder:
        rows = list(measure(args.only or names, max(2, args.rounds), clock, Path(folder)))
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        counted = "processor seconds" if clock is Clock.CPU else "seconds"
        print(f"training, one thread; in {counted}, workers and ray in seconds")
        print(*rows, sep="\n")
    return int(args.check and not all(row.passed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
