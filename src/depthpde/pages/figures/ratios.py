"""Learned ratios: every feature a tick, one row for each place in the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from depthpde.pages.svg import (
    AxisScale,
    bottom_axis,
    drawing,
    element,
    group,
    line,
    room_for,
    shorten,
    text,
)

ROW, TOP = 26.0, 20.0
Values = NDArray[np.float64]
MOST_TICKS = 1000
"""Of one row: a few more than it has pixels."""


def ratios(
    sites: Mapping[str, Sequence[float]],
    *,
    bound: float | None = None,
    start: float | None = None,
    title: str = "Learned ratios by feature and depth",
    width: float = 560.0,
) -> str:
    """Draw for each place the ratios that its features have learned, and their mean.

    Args:
        sites: Place → ratios, in the order of depth.
        bound: The largest ratio that can be learned; ends the axis.
        start: Where all ratios began; a dashed line.
        title: What the figure is.
        width: In pixels.
    """
    arrays = {name: np.asarray(each, dtype=np.float64) for name, each in sites.items()}
    finite = {name: each[np.isfinite(each)] for name, each in arrays.items()}
    known = {name: np.sort(each) for name, each in finite.items() if len(each)}
    largest = max((float(each[-1]) for each in known.values()), default=0.25)
    names = [shorten(name, 34) for name in known]
    scale = AxisScale(0.0, max(bound or 0.0, largest) or 0.25, room_for(names) + 14, width - 60)
    bottom = TOP + ROW * len(known)
    parts = [bottom_axis(scale, bottom, "ratio r")]
    if start is not None and scale.inside(start):
        x = scale.at(start)
        parts += [line(x, TOP - 4, x, bottom, "zero"), text(x, 12, "start", "tick", "middle")]
    for index, values in enumerate(known.values()):
        parts.append(_row(names[index], values, scale, TOP + ROW * (index + 0.5), width))
    described = "; ".join(f"{name}: mean {_mean(each):.3f}" for name, each in known.items())
    return drawing(width, bottom + 40, *parts, title=title, description=described)


def _row(name: str, values: Values, scale: AxisScale, y: float, width: float) -> str:
    """Draw one place; its values come in their order."""
    rug = " ".join(f"M{scale.at(v):.1f},{y - 8:.1f}v16" for v in _thinned(values))
    mean = _mean(values)
    ends = f"{values[0]:.3f} to {values[-1]:.3f}"
    return group(
        text(0, y + 4, name),
        line(scale.start, y, scale.end, y, "grid"),
        element("path", d=rug, kind="rug-ours", stroke_opacity=_faint(len(values))),
        element("circle", cx=scale.at(mean), cy=y, r=4.5, kind="mark-ours"),
        text(width, y + 4, f"{mean:.3f}", "", "end"),
        title=f"{name}: mean {mean:.3f}, {ends} over {len(values)} values",
    )


def _thinned(values: Values) -> list[float]:
    """Keep so many ticks as can be told apart, evenly by rank, and both ends."""
    if len(values) <= MOST_TICKS:
        return values.tolist()
    step = (len(values) - 1) / (MOST_TICKS - 1)
    return [float(values[round(index * step)]) for index in range(MOST_TICKS)]


def _faint(count: int) -> float:
    """Make many ticks fainter, so that where they crowd still shows."""
    return max(0.1, min(0.6, 40 / count))


def _mean(values: Values) -> float:
    return float(values.mean())
