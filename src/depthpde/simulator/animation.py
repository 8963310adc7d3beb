"""A path as a moving picture in a file that any viewer plays.

Frames are drawn by matplotlib and written by Pillow, both of the extra ``plot``; the page that
`depthpde simulate` writes moves without either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from depthpde.errors import check_positive, import_optional
from depthpde.simulator.system import System, View
from depthpde.solvers.trajectory import Trajectory

Values = NDArray[np.float64]
FRAMES, PER_SECOND = 60, 12


def write_gif(system: System, path: Trajectory, file: str | Path, *, frames: int = FRAMES) -> Path:
    """Write a path as a GIF: tokens on their sphere, an image, or the field over sites.

    >>> system = dp.systems["equiangular"]
    >>> dp.write_gif(system, dp.simulate(system), "equiangular.gif", frames=3).name
    'equiangular.gif'

    Args:
        system: What is shown, and how it is best seen.
        path: What was computed.
        file: Where to.
        frames: Most pictures; fewer where fewer times were recorded.
    """
    check_positive("frames", frames)
    figures = import_optional("matplotlib.figure", "write_gif()", "plot")
    writers = import_optional("matplotlib.animation", "write_gif()", "plot")
    shown = torch.linspace(0, len(path.times) - 1, min(frames, len(path.times))).round().long()
    states = path.states[:, 0].detach().double().cpu()
    bounds = float(states[..., 0].min()), float(states[..., 0].max())
    figure = figures.Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    writer = writers.PillowWriter(fps=PER_SECOND)
    with writer.saving(figure, str(file), dpi=80):
        for index in shown.tolist():
            axes.clear()
            _draw(axes, system, states[index].numpy(), bounds)
            axes.set_title(f"{system.name}, t = {float(path.times[index]):.3g}")
            writer.grab_frame()
    return Path(file)


def _draw(axes: Any, system: System, u: Values, bounds: tuple[float, float]) -> None:
    if system.view is View.TOKENS:
        near = u[:, 2] if u.shape[1] > 2 else np.zeros(len(u))  # it points at the reader
        turn = np.linspace(0, 2 * np.pi, 97)
        axes.plot(np.cos(turn), np.sin(turn), color="#c8ccd2", linewidth=1)
        axes.scatter(u[:, 0], u[:, 1], s=30 + 14 * near, c=range(len(u)), cmap="viridis")
        axes.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", xticks=[], yticks=[])
    elif system.view is View.IMAGE:
        assert system.equation.grid is not None, "an image has a grid"
        picture = u[:, 0].reshape(system.equation.grid)
        axes.imshow(picture, vmin=bounds[0], vmax=bounds[1], cmap="viridis")
        axes.set(xticks=[], yticks=[])
    else:
        room = 0.05 * (bounds[1] - bounds[0]) or 1.0
        axes.plot(u[:, 0], color="#1f4e79")
        axes.set(xlabel="site x", ylabel="u, first feature",
                 ylim=(bounds[0] - room, bounds[1] + room))  # fmt: skip
