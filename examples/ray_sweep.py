"""A sweep on Ray: a grid of runs on a cluster, or on one that is started here.

python examples/ray_sweep.py           # joins $RAY_ADDRESS, or starts a cluster; depthpde[ray]
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

import depthpde as dp

OUT = Path("out/gallery")
VARIANTS = (
    dp.Variant("baseline"),
    dp.Variant("after embedding", model={"positions": ("after_embedding",)}),
    dp.Variant("fixed blur", model={"positions": ("after_embedding",), "layer": "blur"}),
)


def main(*, quick: bool = False) -> None:
    """Sweep, read the records, draw the differences seed by seed."""
    updates = 10 if quick else 500
    plan = dp.Plan(
        name="ray-example",
        question="Does diffusion after the embedding help on ListOps?",
        variants=VARIANTS[: 2 if quick else 3],
        bases=dp.bases("mini", ["listops-mini"], training={"updates": updates, "warmup": 5}),
        seeds=1 if quick else 6,
    )
    results = OUT / "ray_sweep"
    plan.write(results)
    outcome = dp.sweep(plan.runs, dp.RayCluster(dp.Folders(results), "auto", slots=2), results)
    print(f"{outcome.recorded + outcome.skipped} runs recorded, {len(outcome.failed)} failed")
    grid = dp.gather(plan.grid, dp.read_results(results).records)
    print(dp.paired_table(grid).text())
    ax = Figure(figsize=(6, 3.6), layout="constrained").subplots()
    for at, name in enumerate(grid.others):
        gaps = list(grid.pairs("listops-mini", name).values())
        ax.plot(gaps, [at] * len(gaps), "o", alpha=0.7)
    ax.axvline(0.0, color="#717a85")
    ax.set_yticks(range(len(grid.others)), grid.others)
    ax.set(xlabel="points above the baseline, one dot a seed", ylim=(-0.5, len(grid.others) - 0.5))
    ax.figure.savefig(OUT / "ray_sweep.png", dpi=100)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
