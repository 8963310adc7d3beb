"""What linear models reach on the mini tasks: the lines of `records/trivial_lines.py`, made again.

    python benchmarks/trivial_lines.py [--check] [--data FOLDER] [--prepared FOLDER]

Text and newsgroups: a bag of bytes. Retrieval: what two bags share and differ in. Image, MNIST and
Pathfinder: the pixels as they are; Image also by its grey levels alone. ``--check`` exits with 1
where a line differs by more than a twentieth of a point. Tasks whose files are not there are named
and left out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import depthpde as dp
from depthpde.data.linear_probe import linear_accuracy, pair_counts, symbol_counts
from depthpde.records.trivial_lines import PROBES

ROOT = Path(__file__).parents[1]
LEVELS = 256
TOLERANCE = 0.05
Features = Callable[[dp.Split], np.ndarray]


def counts(split: dp.Split) -> np.ndarray:
    """Return how often every byte stands in each example."""
    return symbol_counts(np.asarray(split.tokens), np.asarray(split.offsets), LEVELS)


def grey_levels(split: dp.Split) -> np.ndarray:
    """Return how often each of 32 grey levels stands in an image."""
    return symbol_counts(np.asarray(split.tokens) // 8, np.asarray(split.offsets), LEVELS // 8)


def both_counts(split: dp.Split) -> np.ndarray:
    """Return what the bytes of two documents share and differ in."""
    documents, pairs = counts(split), np.asarray(split.pairs)
    return pair_counts(documents[pairs[:, 0]], documents[pairs[:, 1]])


def pixels(split: dp.Split) -> np.ndarray:
    """Return the pixels of each image, row by row."""
    return np.asarray(split.tokens, dtype=np.float64).reshape(len(split), -1)


FEATURES: dict[tuple[str, str], Features] = {
    ("text-mini", "bag of bytes"): counts,
    ("newsgroups-mini", "bag of bytes"): counts,
    ("retrieval-mini", "byte counts of both"): both_counts,
    ("image-mini", "grey-level counts"): grey_levels,
    ("image-mini", "linear probe of the pixels"): pixels,
    ("mnist-mini", "linear probe of the pixels"): pixels,
    ("pathfinder-mini", "linear probe of the pixels"): pixels,
}


def both_splits(task: str, data: Path, out: Path | None) -> list[dp.Split]:
    """Return train and test of a task, prepared where they are not."""
    try:
        return [dp.load(task, split, out=out) for split in ("train", "test")]
    except FileNotFoundError:
        dp.prepare(task, data=data, out=out, log=lambda text: print(text, file=sys.stderr))
        return [dp.load(task, split, out=out) for split in ("train", "test")]


def measure(data: Path, out: Path | None) -> Iterator[tuple[str, str, float | None]]:
    """Yield task, line and percent; None where the official files are missing."""
    for (task, line), features in FEATURES.items():
        try:
            train, test = both_splits(task, data, out)
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            yield task, line, None
            continue
        x, y = features(train), np.asarray(train.labels)
        yield task, line, linear_accuracy(x, y, features(test), np.asarray(test.labels))


def main() -> int:
    """Print every line beside the one that tables use."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--data", type=Path, default=os.environ.get("DEPTHPDE_DATA"))
    parser.add_argument("--prepared", type=Path)
    options = parser.parse_args()
    wrong = 0
    for task, line, found in measure(
        options.data or ROOT.parent / "shared" / "data", options.prepared
    ):
        stated = PROBES[task][line]
        shown = "files missing" if found is None else f"{found:.2f}"
        wrong += found is not None and abs(found - stated) > TOLERANCE
        print(f"{task:18} {line:28} {shown:>14}   in tables {stated:.2f}")
    return int(bool(wrong) and options.check)


if __name__ == "__main__":
    sys.exit(main())
