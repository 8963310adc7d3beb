"""Time series from arrays: plain against diffusion by paired seeds.

    python examples/time_series.py ECG5000_TRAIN.tsv ECG5000_TEST.tsv  # any set of the archive UCR

Without files: cylinder, bell and funnel, by the law of Saito (1994), as the archive's set CBF.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import depthpde as dp

OUT, LENGTH = Path("out/gallery"), 128
VARIANTS = {
    "plain": {},
    "diffusion": {"positions": ("after_embedding",)},
    "fixed blur": {"positions": ("after_embedding",), "layer": "blur"},
}


def make_series(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a plateau (0), a ramp up (1) or a ramp down (2) at a random place, in noise."""
    draw = np.random.default_rng(0)
    labels = np.arange(count) % 3
    begin, wide = draw.uniform(16, 32, (count, 1)), draw.uniform(32, 96, (count, 1))
    t = np.arange(LENGTH)[None]
    inside = (t >= begin) & (t <= begin + wide)
    ramp = np.clip((t - begin) / wide, 0, 1)
    shapes = np.stack([np.ones_like(ramp), ramp, 1 - ramp])[labels, np.arange(count)]
    height = 6 + draw.normal(size=(count, 1))
    return inside * shapes * height + draw.normal(size=(count, LENGTH)), labels


def read_ucr(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Return series and labels of one file: a label, then the values, by tabs."""
    rows = np.loadtxt(path, delimiter="\t")
    return rows[:, 1:], rows[:, 0].astype(int)


def main(files: list[str], *, quick: bool = False) -> None:
    """Compare, print the verdicts, save the page."""
    if files:
        (x, y), test = read_ucr(files[0]), read_ucr(files[1])
        task = dp.Task.from_arrays(Path(files[0]).stem.removesuffix("_TRAIN"), x, y, test=test)
    else:
        task = dp.Task.from_arrays("cylinder-bell-funnel", *make_series(60 if quick else 930))
    here = dp.InProcess(dp.Folders(OUT / "time_series"))  # leave it out: one process a core
    small = {"seeds": 2, "training": {"updates": 4}, "executor": here}
    whole = {"seeds": 7, "training": {"updates": 100}, "out": OUT / "time_series"}
    result = dp.compare(task, VARIANTS, **(small if quick else whole))
    print(result)
    result.save(OUT / "time_series.html")


if __name__ == "__main__":
    main([each for each in sys.argv[1:] if each != "--quick"], quick="--quick" in sys.argv)
