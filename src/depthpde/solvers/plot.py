"""A path as matplotlib axes: the field over depth, its energy, its clusters, its spectrum."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depthpde.errors import check_name
from depthpde.operators.energy import cosine_transform, dirichlet_energy
from depthpde.solvers.clusters import count_clusters

PICTURES = ("field", "energy", "clusters", "spectrum")
INK, FILL = "#1f4e79", "viridis"


def draw_path(times: Tensor, states: Tensor, what: str = "field", ax: Any = None) -> Any:
    """Draw one picture of a path.

    Args:
        times: [times].
        states: [times, batch, length, dim]; the first sample is drawn, and of it the first feature
            where a picture shows one.
        what: One of `PICTURES`.
        ax: matplotlib axes to draw into; new ones unless given.

    Returns:
        The axes.
    """
    check_name("what", what, PICTURES)
    if ax is None:
        ax = _new_axes()
    clock, first = times.tolist(), states[:, 0].detach().double().cpu()
    if what == "field":
        image = ax.pcolormesh(clock, range(first.shape[1]), first[:, :, 0].mT, cmap=FILL)
        ax.figure.colorbar(image, ax=ax, label="u")
        ax.set(xlabel="time t (depth)", ylabel="site x", title="field, first feature")
    elif what == "spectrum":
        modes = cosine_transform(first).square().sum(dim=-1).clamp_min(1e-30).log10()
        image = ax.pcolormesh(clock, range(modes.shape[1]), modes.mT, cmap=FILL)
        ax.figure.colorbar(image, ax=ax, label="log₁₀ energy")
        ax.set(xlabel="time t (depth)", ylabel="cosine mode k", title="spectrum")
    else:
        measure = dirichlet_energy if what == "energy" else count_clusters
        values = torch.cat([measure(state[None]) for state in first])
        ax.plot(clock, values.tolist(), color=INK)
        name = "Dirichlet energy" if what == "energy" else "clusters"
        ax.set(xlabel="time t (depth)", ylabel=name, title=name)
    return ax


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ValueError(
            "`plot` must find matplotlib, which is not installed; use pip install 'depthpde[plot]'"
        ) from error
    return Figure(figsize=(6, 4), layout="constrained").subplots()  # no window, no global state
