"""Lines over a common axis, with the band of the seeds and the lines that need no learning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from depthpde.pages.svg import (
    AxisScale,
    bottom_axis,
    drawing,
    group,
    left_axis,
    line,
    path,
    room_for,
    shorten,
    text,
)
from depthpde.records.run_model import VariantRole

LEFT, RIGHT, TOP, LEGEND = 40.0, 14.0, 22.0, 16.0
NAME_ROOM = 22.0
"""Names of horizontal lines closer than this are hard to tell apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One curve; a point that is no number is a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    """The band's lower edge; empty for none."""
    high: Sequence[float] = ()
    role: VariantRole | str = VariantRole.OURS
    """Baselines are dashed, ours solid and blue, controls solid and grey, others dotted."""
    title: str = ""


def curves(
    lines: Sequence[Line],
    *,
    title: str,
    trivial: Mapping[str, float] | None = None,
    x_label: str = "",
    y_label: str = "",
    x_ticks: Mapping[float, str] | None = None,
    y_range: tuple[float, float] | None = None,
    width: float = 360.0,
    height: float = 230.0,
) -> str:
    """Draw curves with their names above and horizontal lines that are named where they run.

    Args:
        lines: The curves.
        title: What the figure is.
        trivial: Name → height of a horizontal line.
        x_label: What runs along the bottom.
        y_label: What runs up the side.
        x_ticks: Where the bottom is marked, and with what; round numbers if not given.
        y_range: Ends of the side; from the numbers if not given.
        width: In pixels.
        height: In pixels, without the names.
    """
    known = [each for each in lines if any(_finite(each))]
    names = _legend(known, width)
    top = TOP + LEGEND * names[1]
    bottom = top + height - 62
    xs = [x for each in known for x, _ in _finite(each)]
    across = AxisScale(min(xs, default=0.0), max(xs, default=1.0), LEFT, width - RIGHT)
    low, high = y_range or _range(known, trivial or {})
    up = AxisScale(low, high, bottom, top)
    parts = [
        names[0],
        left_axis(up, LEFT, width - RIGHT),
        bottom_axis(across, bottom, x_label, x_ticks),
    ]
    if y_label:
        parts.append(text(0, top - 8, y_label, "tick"))
    heights = {name: up.at(value) for name, value in (trivial or {}).items()}
    parts += [line(LEFT, y, width - RIGHT, y, "line-trivial") for y in heights.values()]
    parts += [_band(each, across, up) for each in known]
    parts += [_curve(each, across, up) for each in known]
    parts += _names_of_lines(
        {f"{name} {(trivial or {})[name]:.1f}": y for name, y in heights.items()},
        (top + bottom) / 2,
        width,
    )
    return drawing(width, bottom + 38, *parts, title=title, description=_describe(known, trivial))


def _names_of_lines(heights: Mapping[str, float], middle: float, width: float) -> list[str]:
    """Write the names of horizontal lines above them, at an end where no other name is close.

    Curves rise: what is high is free at the left, what is low at the right.
    """
    taken: list[tuple[bool, float]] = []
    parts = []
    for words, y in sorted(heights.items(), key=lambda each: each[1]):
        right = y > middle
        if any(side is right and abs(y - other) < NAME_ROOM for side, other in taken):
            right = not right
        taken.append((right, y))
        parts.append(
            text(width - RIGHT, y - 3, words, "warn", "end")
            if right
            else text(LEFT + 4, y - 3, words, "warn")
        )
    return parts


def _finite(each: Line) -> list[tuple[float, float]]:
    return [(x, y) for x, y in zip(each.x, each.y, strict=True) if math.isfinite(y)]


def _curve(each: Line, across: AxisScale, up: AxisScale) -> str:
    points = [(across.at(x), up.at(y)) for x, y in _finite(each)]
    if len(points) == 1:
        (x, y), half = points[0], 3.0
        points = [(x - half, y), (x + half, y)]
    return group(path(points, f"line-{each.role}"), title=each.title or each.name)


def _band(each: Line, across: AxisScale, up: AxisScale) -> str:
    if not each.low or not each.high:
        return ""
    sides = list(zip(each.x, each.low, each.high, strict=True))
    there = [(x, a, b) for x, a, b in sides if math.isfinite(a) and math.isfinite(b)]
    upper = [(across.at(x), up.at(b)) for x, _, b in there]
    lower = [(across.at(x), up.at(a)) for x, a, _ in reversed(there)]
    return path(upper + lower, f"band-{each.role}", closed=True) if there else ""


def _legend(lines: Sequence[Line], width: float) -> tuple[str, int]:
    """Write the names with a piece of their line, in as many rows as they need."""
    parts, x, row = [], LEFT, 0
    for each in lines if len(lines) > 1 else ():
        words = shorten(each.name)
        room = 32 + room_for([words], 11)
        if x > LEFT and x + room > width:
            x, row = LEFT, row + 1
        y = 10 + LEGEND * row
        parts += [
            line(x, y - 4, x + 20, y - 4, f"line-{each.role}"),
            text(x + 25, y, words, "tick"),
        ]
        x += room + 8
    return "".join(parts), row + 1 if parts else 0


def _range(lines: Sequence[Line], trivial: Mapping[str, float]) -> tuple[float, float]:
    values = [y for each in lines for _, y in _finite(each)]
    values += [v for each in lines for v in (*each.low, *each.high) if math.isfinite(v)]
    values += list(trivial.values())
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.08 * (high - low) or 0.5
    return low - margin, high + margin


def _describe(lines: Sequence[Line], trivial: Mapping[str, float] | None) -> str:
    said = []
    for each in lines:
        points = _finite(each)
        said.append(f"{each.name}: from {points[0][1]:.3g} to {points[-1][1]:.3g}")
    said += [f"{name} at {value:.1f}" for name, value in (trivial or {}).items()]
    return "; ".join(said)
