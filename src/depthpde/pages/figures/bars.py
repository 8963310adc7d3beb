"""Bars side by side, such as the energy in four bands of frequency."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from depthpde.pages.svg import (
    DIGIT,
    AxisScale,
    drawing,
    element,
    group,
    left_axis,
    line,
    room_for,
    shorten,
    spell_tick,
    text,
)

LEFT, TOP, LEGEND, TICK = 40.0, 30.0, 16.0, 11.0
KINDS = ("mark-control", "mark-ours", "mark-baseline")
"""Open, full and grey: the first is what was, the second what became of it."""


def bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    y_label: str = "",
    y_range: tuple[float, float] | None = None,
    log: bool = False,
    width: float = 360.0,
    height: float = 200.0,
) -> str:
    """Draw a group of bars for each name, one bar a series.

    Args:
        groups: Names along the bottom.
        series: Name → one number for each group; at most three.
        title: What the figure is.
        y_label: What runs up the side.
        y_range: Ends of the side; from 0 to the largest number if not given, and on a logarithmic
            side from the power of ten below the smallest.
        log: Make the side logarithmic; what is not positive has no bar.
        width: In pixels.
        height: In pixels.
    """
    bottom = height - 28
    scale = AxisScale(*(y_range or _range(series, log)), bottom, TOP, log=log)
    left = max(LEFT, room_for([spell_tick(each) for each in scale.ticks(4)], TICK, DIGIT) + 8)
    start = max(left, room_for([y_label], TICK) + 16) if y_label else left
    legend, rows = _legend(series, start, width)
    top = TOP + LEGEND * (rows - 1)
    up = AxisScale(scale.low, scale.high, bottom, top, log=log)
    step = (width - left - 8) / max(len(groups), 1)
    thick = min(26.0, 0.7 * step / max(len(series), 1))
    parts = [left_axis(up, left, width - 8), line(left, bottom, width - 8, bottom, "axis"), legend]
    if y_label:
        parts.append(text(0, TOP - 10, y_label, "tick"))
    for i, name in enumerate(groups):
        middle = left + step * (i + 0.5)
        parts.append(text(middle, bottom + 16, name, "tick", "middle"))
        for j, (which, kind) in enumerate(zip(series, KINDS, strict=False)):
            value = series[which][i]
            if log and not value > 0:
                continue
            y = up.at(value)
            x = middle + thick * (j - len(series) / 2)
            bar = element(
                "rect", x=x + 1, y=y, width=thick - 2, height=max(bottom - y, 0.5), kind=kind
            )
            parts.append(group(bar, title=f"{which}, {name}: {value:.3g}"))
    described = "; ".join(
        f"{which}: {', '.join(f'{name} {v:.3g}' for name, v in zip(groups, each, strict=True))}"
        for which, each in series.items()
    )
    return drawing(width, height, *parts, title=title, description=described)


def _range(series: Mapping[str, Sequence[float]], log: bool) -> tuple[float, float]:
    values = [v for each in series.values() for v in each if v > 0 or not log]
    largest = max(values, default=1.0) or 1.0
    if not log:
        return 0.0, 1.06 * largest
    return 10.0 ** math.floor(math.log10(min(values, default=0.1)) - 1e-9), 1.3 * largest


def _legend(series: Mapping[str, Sequence[float]], start: float, width: float) -> tuple[str, int]:
    """Write the names with a piece of their bar, in as many rows as they need."""
    parts, x, row = [], start, 0
    for name, kind in zip(series, KINDS, strict=False):
        words = shorten(name)
        room = 14 + room_for([words], TICK)
        if x > start and x + room > width:
            x, row = start, row + 1
        y = TOP - 10 + LEGEND * row
        parts += [
            element("rect", x=x, y=y - 9, width=9.0, height=9.0, kind=kind),
            text(x + 14, y, words, "tick"),
        ]
        x += room + 16
    return "".join(parts), row + 1
