"""Lines over a common axis, with the band of the seeds and the lines that need no learning."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from depthpde.pages.svg import (
    DIGIT,
    AxisScale,
    bottom_axis,
    drawing,
    element,
    group,
    left_axis,
    line,
    path,
    room_for,
    shorten,
    spell_tick,
    text,
)
from depthpde.records.run_model import VariantRole

LEFT, RIGHT, TOP, LEGEND = 40.0, 14.0, 22.0, 16.0
NAME_ROOM = 22.0
"""Names of horizontal lines closer than this are hard to tell apart."""
ABOVE = -3.0
NAME_PLACES = (ABOVE, 10.0, -16.0, 23.0, -29.0, 36.0, -42.0)
"""Where a name may stand, from its line on: the first place that is free."""
TICK = 11.0
"""Size of the letters on an axis."""
BASELINES = ("line-baseline", "line-baseline-2", "line-baseline-3")
"""Several baselines in one figure differ in their dashes."""


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
    """Baselines are dashed, ours solid and blue, controls dash-dotted, others dotted; a ``formula``
    is thin with long dashes, a ``warning`` red and dotted."""
    title: str = ""
    dots: bool = False
    """Whether every point has a mark that shows its number; for few points."""


def curves(
    lines: Sequence[Line],
    *,
    title: str,
    trivial: Mapping[str, float] | None = None,
    x_label: str = "",
    y_label: str = "",
    x_ticks: Mapping[float, str] | None = None,
    y_range: tuple[float, float] | None = None,
    log_x: bool = False,
    log_y: bool = False,
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
        log_x: Make the bottom logarithmic; what is not positive is a gap.
        log_y: Make the side logarithmic; what is not positive is a gap.
        width: In pixels.
        height: In pixels, without the names.

    Example:
        >>> curves([Line(name="a", x=[0, 1], y=[1, 2])], title="rise").count("<svg")
        1
    """
    levels = {name: v for name, v in (trivial or {}).items() if v > 0 or not log_y}
    drawn = [
        _Drawn(each, kind, log_x, log_y) for each, kind in zip(lines, _kinds(lines), strict=True)
    ]
    drawn = [each for each in drawn if each.points]
    left, right = LEFT, width - RIGHT
    legend, rows = _legend(drawn, left, width)
    top = TOP + LEGEND * rows
    bottom = top + height - 62
    up = AxisScale(*(y_range or _range(drawn, levels, log_y)), bottom, top, log=log_y)
    left = max(LEFT, room_for([spell_tick(each) for each in up.ticks(4)], TICK, DIGIT) + 8)
    across = _across(drawn, x_ticks, left, right, log_x)
    parts = [legend, left_axis(up, left, right), bottom_axis(across, bottom, x_label, x_ticks)]
    if y_label:
        parts.append(text(0, top - 8, y_label, "tick"))
    heights = {name: up.at(value) for name, value in levels.items()}
    parts += [line(left, y, right, y, "line-trivial") for y in heights.values()]
    parts += [each.band(across, up) for each in drawn]
    parts += [each.curve(across, up) for each in drawn]
    parts += _names_of_lines(
        {f"{name} {_spell(levels[name])}": y for name, y in heights.items()},
        (left, right, top, bottom),
    )
    return drawing(width, bottom + 38, *parts, title=title, description=_describe(drawn, levels))


class _Drawn:
    """A curve with its look, on axes that may be logarithmic."""

    def __init__(self, line: Line, kind: str, log_x: bool, log_y: bool) -> None:
        self.line, self.kind, self.log_x, self.log_y = line, kind, log_x, log_y
        pairs = zip(line.x, line.y, strict=True)
        found = itertools.groupby(pairs, key=lambda pair: self._there(*pair))
        self.runs = [list(run) for there, run in found if there]
        """The points between two gaps, run by run."""
        self.points = [point for run in self.runs for point in run]

    def curve(self, across: AxisScale, up: AxisScale) -> str:
        parts = []
        for run in self.runs:
            points = [(across.at(x), up.at(y)) for x, y in run]
            if len(points) == 1:  # a point between two gaps has no length of its own
                (x, y), half = points[0], 3.0
                points = [(x - half, y), (x + half, y)]
            parts.append(path(points, self.kind))
        title = self.line.title or self.line.name
        marks = [self._mark(x, y, across, up) for x, y in self.points if self.line.dots]
        return group(*parts, title=title) + "".join(marks)

    def band(self, across: AxisScale, up: AxisScale) -> str:
        if not self.line.low or not self.line.high:
            return ""
        sides = list(zip(self.line.x, self.line.low, self.line.high, strict=True))
        there = [(x, a, b) for x, a, b in sides if self._there(x, a) and self._there(x, b)]
        upper = [(across.at(x), up.at(b)) for x, _, b in there]
        lower = [(across.at(x), up.at(a)) for x, a, _ in reversed(there)]
        return path(upper + lower, f"band-{self.line.role}", closed=True) if there else ""

    def _mark(self, x: float, y: float, across: AxisScale, up: AxisScale) -> str:
        kind = self.kind.replace("line-", "dot-", 1)
        disc = element("circle", cx=across.at(x), cy=up.at(y), r=3.0, kind=kind)
        return group(disc, title=f"{self.line.name}, {spell_tick(x)}: {y:.3g}")

    def _there(self, x: float, y: float) -> bool:
        seen = math.isfinite(x) and math.isfinite(y)
        return seen and (x > 0 or not self.log_x) and (y > 0 or not self.log_y)


def _kinds(lines: Sequence[Line]) -> list[str]:
    dashes = itertools.cycle(BASELINES)
    return [
        next(dashes) if each.role == VariantRole.BASELINE else f"line-{each.role}" for each in lines
    ]


def _across(
    drawn: Sequence[_Drawn],
    ticks: Mapping[float, str] | None,
    left: float,
    right: float,
    log: bool,
) -> AxisScale:
    """Return the scale along the bottom, with room for half of the last number beyond its end."""
    xs = [x for each in drawn for x, _ in each.points]
    low, high = min(xs, default=1.0 if log else 0.0), max(xs, default=1.0)
    whole = AxisScale(low, high, left, right, log=log)
    words = list((ticks or {each: spell_tick(each) for each in whole.ticks()}).values())
    spare = max(0.0, room_for(words[-1:], TICK, DIGIT) / 2 - RIGHT)
    return AxisScale(low, high, left, right - spare, log=log)


def _names_of_lines(
    heights: Mapping[str, float], frame: tuple[float, float, float, float]
) -> list[str]:
    """Write the names of horizontal lines where no other name is: above them, below, further off.

    Curves rise: what is high is free at the left, what is low at the right.

    Args:
        heights: What is written → the height of its line.
        frame: Left, right, top and bottom.
    """
    left, right, top, bottom = frame
    taken: list[tuple[bool, float, float]] = []
    parts = []
    for words, y in sorted(heights.items(), key=lambda each: each[1]):
        wide, first = room_for([words], TICK), y > (top + bottom) / 2
        places = [
            (side, y + off)
            for off in NAME_PLACES
            for side in (first, not first)
            if off == ABOVE or top + TICK < y + off < bottom - 2
        ]
        at_right, base = next(
            (each for each in places if _is_free(*each, wide, y, taken, right - left)), places[0]
        )
        taken.append((at_right, base, wide))
        parts.append(
            text(right, base, words, "warn", "end")
            if at_right
            else text(left + 4, base, words, "warn")
        )
    return parts


def _is_free(
    at_right: bool,
    base: float,
    wide: float,
    line_y: float,
    taken: Sequence[tuple[bool, float, float]],
    room: float,
) -> bool:
    """Return whether a name touches no other; those of both ends may meet in the middle."""
    near = NAME_ROOM if base - line_y == ABOVE else TICK + 1
    return all(
        abs(base - other) >= (near if side is at_right else TICK)
        or (side is not at_right and wide + width + 8 <= room)
        for side, other, width in taken
    )


def _legend(drawn: Sequence[_Drawn], left: float, width: float) -> tuple[str, int]:
    """Write the names with a piece of their line, in as many rows as they need."""
    parts, x, row = [], left, 0
    for each in drawn if len(drawn) > 1 else ():
        words = shorten(each.line.name)
        room = 32 + room_for([words], TICK)
        if x > left and x + room > width:
            x, row = left, row + 1
        y = 10 + LEGEND * row
        parts += [line(x, y - 4, x + 20, y - 4, each.kind), text(x + 25, y, words, "tick")]
        x += room + 8
    return "".join(parts), row + 1 if parts else 0


def _range(drawn: Sequence[_Drawn], levels: Mapping[str, float], log: bool) -> tuple[float, float]:
    values = [y for each in drawn for _, y in each.points]
    edges = [v for each in drawn for v in (*each.line.low, *each.line.high)]
    values += [v for v in edges if math.isfinite(v) and (v > 0 or not log)]
    values += list(levels.values())
    if log:
        low, high = min(values, default=1.0), max(values, default=10.0)
        margin = (high / low) ** 0.08 if high > low else 2.0
        return low / margin, high * margin
    low, high = min(values, default=0.0), max(values, default=1.0)
    spread = high - low  # that of rounding alone would be an axis of equal numbers
    margin = 0.08 * spread if spread > 1e-9 * max(abs(low), abs(high)) else 0.5
    return low - margin, high + margin


def _spell(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 1 or value == 0 else f"{value:.2g}"


def _describe(drawn: Sequence[_Drawn], levels: Mapping[str, float]) -> str:
    described = [
        f"{each.line.name}: from {each.points[0][1]:.3g} to {each.points[-1][1]:.3g}"
        for each in drawn
    ]
    described += [f"{name} at {_spell(value)}" for name, value in levels.items()]
    return "; ".join(described)
