"""How fast tasks are made and batches come, against bars that ``--check`` enforces.

    python benchmarks/data.py [--check] [--data FOLDER] [--json]

Generators are timed after one small warm-up call, so that compilation is not counted. The loader
is compared with the training of a two-block encoder of width 32, the small model that mini tasks
are meant for, in the same process. IMDb is measured where the official files are there:
``--data``, ``$DEPTHPDE_DATA`` or ``../shared/data``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import depthpde as dp
from depthpde.data.recipes.listops import generate as grow
from depthpde.data.recipes.pathfinder import LRA_32
from depthpde.data.recipes.pathfinder import generate as draw

ROOT = Path(__file__).parents[1]
WORKERS = 2
REPEATS = 3


@dataclass(frozen=True)
class Row:
    """One measurement and its bar."""

    name: str
    value: float
    unit: str
    bar: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        """Whether the bar is met."""
        return self.value <= self.bar if self.at_most else self.value >= self.bar

    def __str__(self) -> str:
        sign = "≤" if self.at_most else "≥"
        verdict = "ok" if self.holds else "MISSED"
        return (
            f"{self.name:48} {self.value:>14,.1f} {self.unit:12} {sign} {self.bar:<8,.0f} {verdict}"
        )


class SmallEncoder(nn.Module):
    """Two pre-norm blocks of width 32: the model whose appetite the loader must exceed."""

    def __init__(self, task: dp.Task) -> None:
        super().__init__()
        self.tokens = nn.Embedding(task.vocabulary, 32)
        self.sites = nn.Parameter(torch.randn(task.length, 32))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                32, 2, 128, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.head = nn.Linear(32, task.classes)

    def forward(self, tokens: torch.Tensor, valid_mask: torch.Tensor) -> torch.Tensor:
        """Return the logits [batch, classes]."""
        u = self.tokens(tokens) + self.sites[: tokens.shape[1]]
        for block in self.blocks:
            u = block(u, src_key_padding_mask=~valid_mask)
        weight = valid_mask[..., None].float()
        return self.head((u * weight).sum(1) / weight.sum(1))


def median_seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def generators() -> list[Row]:
    """Time the two generators."""
    grow(100, 1, workers=WORKERS)
    draw(LRA_32, 64, 1, workers=WORKERS)
    trees = median_seconds(lambda: grow(100_000, 0, workers=WORKERS))
    scenes = median_seconds(lambda: draw(LRA_32, 8_000, 0, workers=WORKERS))
    return [
        Row("ListOps: 100,000 examples of LRA size", trees, "s", 15, at_most=True),
        Row("Pathfinder: images of 32×32", 8_000 / scenes, "images/s", 2_000),
    ]


def loading(name: str, out: Path, trained: float) -> list[Row]:
    """Measure padding and speed of the batches of a prepared task."""
    split = dp.load(name, "train", out=out)
    batches, lengths = dp.Batches(split, 32), split.lengths()
    plan = batches.plan(0)[:400]
    tokens = sum(int(lengths[part.indices].sum()) for part in plan)
    loaded = tokens / median_seconds(lambda: [batches.fill(part) for part in plan])
    fixed = 100 * (1 - float(lengths.mean()) / split.length)
    print(
        f"{name}: {loaded:,.0f} tokens/s loaded, {trained:,.0f} tokens/s trained; padding to "
        f"{split.length:,} would waste {fixed:.0f} %",
        file=sys.stderr,
    )
    return [
        Row(f"{name}: loader over training", loaded / trained, "times", 20),
        Row(f"{name}: padding", 100 * batches.waste(), "%", 10, at_most=True),
    ]


def training_speed(name: str, out: Path) -> float:
    """Return the real tokens a second at which the small encoder trains on a mini task.

    Long sequences train more slowly, so this is the harder bar for the loader at any length.
    """
    model, batches = SmallEncoder(dp.tasks[name]), dp.Batches(dp.load(name, "train", out=out), 32)
    optimizer = torch.optim.AdamW(model.parameters())
    ready = [batches.fill(part) for part in batches.plan(0)[:6]]

    def updates() -> None:
        for batch in ready:
            loss = nn.functional.cross_entropy(model(batch.tokens, batch.valid_mask), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    updates()
    tokens = sum(int(batch.valid_mask.sum()) for batch in ready)
    return tokens / median_seconds(updates, 2)


def measure(data: Path | None) -> list[Row]:
    """Run everything in a folder that is removed afterwards."""
    rows = generators()
    names = ["listops"]
    if data is None:
        print("IMDb not measured: set DEPTHPDE_DATA to the official files", file=sys.stderr)
    else:
        names.append("text")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for name in names:
            for size in (f"{name}-mini", name):
                dp.prepare(size, data=data, out=out, workers=WORKERS)
            trained = training_speed(f"{name}-mini", out)
            for size in (f"{name}-mini", name):
                rows += loading(size, out, trained)
    return rows


def main() -> int:
    """Print the table; with ``--check`` fail if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--data", type=Path, help="folder with the official files")
    parser.add_argument("--json", action="store_true", help="one JSON object for scripts")
    arguments = parser.parse_args()
    data = arguments.data or Path(
        os.environ.get("DEPTHPDE_DATA") or ROOT / ".." / "shared" / "data"
    )
    torch.set_num_threads(WORKERS)
    rows = measure(data.resolve() if data.is_dir() else None)
    if arguments.json:
        print(json.dumps([vars(row) | {"holds": row.holds} for row in rows]))
    else:
        print(*rows, sep="\n")
    return 1 if arguments.check and not all(row.holds for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
