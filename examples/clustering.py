"""The simulator: tokens on a sphere attract each other and become one (Geshkovski et al.).

python examples/clustering.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

import depthpde as dp

OUT = Path("out/gallery")


def main(*, quick: bool = False) -> None:
    """Simulate at two temperatures, draw every token's path and the number of clusters."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, beta in zip(axes, (1.0, 9.0), strict=False):
        system = dp.systems["clustering"].vary(beta=beta, tokens=12 if quick else 32)
        path = dp.simulate(system, events=[dp.merged(clusters=2, apart=0.05, terminal=False)])
        for token in range(path.states.shape[2]):
            ax.plot(path.times, path.states[:, 0, token, 0], color="#0b62c4", linewidth=0.8)
        ax.set(xlabel="time t (depth)", ylabel="first coordinate", title=f"β = {beta:g}")
        path.plot("clusters", ax=axes[2])
        axes[2].lines[-1].set(label=f"β = {beta:g}", linestyle="-" if beta < 5 else "--")
        when = [firing.time for firing in path.events]
        said = f"two clusters at t = {when[0]:.2f}" if when else "more than two clusters at the end"
        print(f"β = {beta:g}: {said}; {path.method}, {path.statistics.steps} steps")
    axes[2].legend()
    OUT.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT / "clustering.png", dpi=100)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
