"""Differences with their intervals, one row a variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from depthpde.pages.formatting import signed
from depthpde.pages.svg import (
    AxisScale,
    bottom_axis,
    drawing,
    element,
    group,
    line,
    path,
    room_for,
    shorten,
    spell_tick,
    text,
)
from depthpde.records.run_model import VariantRole

ROW, TOP = 25.0, 22.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """One row: a difference and how sure it is."""

    label: str
    mean: float
    low: float | None = None
    """Ends of the interval; None where there is none."""
    high: float | None = None
    n: int = 0
    """Pairs behind it."""
    role: VariantRole | str = VariantRole.OURS
    points: tuple[float, ...] = ()
    """The difference of each pair: ticks below the interval, a chevron for those off the axis."""
    title: str = ""
    """What a reader sees when pointing at it."""
    href: str = ""
    digits: int = 1
    """Decimals of the numbers beside the interval."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low is not None and self.high is not None and self.low * self.high > 0

    def spell(self) -> str:
        """Write the difference and its interval."""
        if self.low is None or self.high is None:
            return f"{signed(self.mean, self.digits)} [no interval]"
        ends = (signed(end, self.digits) for end in (self.low, self.high))
        return f"{signed(self.mean, self.digits)} [{', '.join(ends)}]"


def forest(
    estimates: Sequence[Estimate],
    *,
    title: str = "Difference from the baseline",
    unit: str = "points over the baseline",
    width: float = 620.0,
) -> str:
    """Draw one row for each variant: name, interval, numbers. Right of zero is better."""
    left = room_for([shorten(each.label) for each in estimates]) + 14
    right = width - room_for([each.spell() for each in estimates]) - 18
    scale = _scale(estimates, left + 8, right)
    bottom = TOP + ROW * len(estimates)
    parts = [_frame(scale, bottom, unit), text(scale.at(0) + 6, 12, "better →", "tick")]
    for index, each in enumerate(estimates):
        y = TOP + ROW * (index + 0.5)
        kind = "strong" if each.is_clear else ""
        label = text(0, y + 4, shorten(each.label), kind)
        numbers = text(width, y + 4, each.spell(), kind, "end")
        parts.append(
            group(label, mark(each, scale, y), numbers, title=_title(each), href=each.href)
        )
    described = "; ".join(f"{each.label} {each.spell()}" for each in estimates)
    return drawing(width, bottom + 40, *parts, title=title, description=described, links=True)


def forests(
    panels: Mapping[str, Sequence[Estimate | None]],
    labels: Sequence[str],
    *,
    title: str = "Difference from the baseline by task",
    unit: str = "points",
    width: float = 1180.0,
) -> str:
    """Draw the same rows for several tasks side by side, each to a scale of its own.

    One scale for all would hide every task behind the one that moves most.

    Args:
        panels: Task → one estimate a label; None where there is none.
        labels: The rows' names.
        title: What the figure is.
        unit: What the axes count.
        width: In pixels.
    """
    left = room_for([shorten(each) for each in labels]) + 14
    every = [each for rows in panels.values() for each in rows if each is not None]
    step = (width - left) / max(len(panels), 1)
    bottom = TOP + ROW * len(labels)
    parts = [
        text(0, TOP + ROW * (row + 0.5) + 4, shorten(label)) for row, label in enumerate(labels)
    ]
    for index, (name, rows) in enumerate(panels.items()):
        start = left + step * index
        shown = [each for each in rows if each is not None]
        scale = _scale(shown, start + 10, start + step - 14)
        middle = start + step / 2 - 2
        parts += [text(middle, 13, name, "head", "middle"), _frame(scale, bottom, unit, 3)]
        for row, each in enumerate(rows):
            if each is not None:
                y = TOP + ROW * (row + 0.5)
                parts.append(group(mark(each, scale, y), title=_title(each), href=each.href))
    described = "; ".join(f"{each.label} {each.spell()}" for each in every)
    return drawing(width, bottom + 40, *parts, title=title, description=described, links=True)


def mark(each: Estimate, scale: AxisScale, y: float) -> str:
    """Draw one difference and its interval: an open square for a control, else a disc."""
    parts = []
    if each.low is not None and each.high is not None:
        parts.append(line(scale.at(each.low), y, scale.at(each.high), y, f"whisker-{each.role}"))
        for end, way in ((each.low, -1), (each.high, 1)):
            x = scale.at(end)
            if scale.inside(end):
                parts.append(line(x, y - 4, x, y + 4, f"whisker-{each.role}"))
            else:
                tip = [(x, y - 4), (x + 5 * way, y), (x, y + 4)]
                parts.append(path(tip, f"mark-{each.role}", closed=True))
    if each.points:
        parts.append(element("path", d=_ticks(each.points, scale, y + 7), kind="seed"))
    x, kind = scale.at(each.mean), f"mark-{each.role}"
    if each.role == VariantRole.CONTROL:
        parts.append(element("rect", x=x - 4, y=y - 4, width=8.0, height=8.0, kind=kind))
    else:
        parts.append(element("circle", cx=x, cy=y, r=4.5, kind=kind))
    return "".join(parts)


def _ticks(points: Sequence[float], scale: AxisScale, y: float) -> str:
    """Return a tick for each point on the axis, and a chevron at each end that has more beyond."""
    drawn = [f"M{scale.at(each):.1f},{y:.1f}v3" for each in points if scale.inside(each)]
    for end, way in ((scale.low, -1), (scale.high, 1)):
        if any((each - end) * way > 0 for each in points):
            drawn.append(f"M{scale.at(end):.1f},{y - 1:.1f}l{3 * way},2.5l{-3 * way},2.5")
    return " ".join(drawn)


def _scale(estimates: Sequence[Estimate], start: float, end: float) -> AxisScale:
    """Hold every mean and most intervals: one wild interval must not flatten the others."""
    means = [each.mean for each in estimates] + [0.0]
    ends = [e for each in estimates for e in (each.low, each.high) if e is not None]
    reach = max(1.0, 3 * max(abs(each) for each in means))
    low = min([*means, *(max(each, -reach) for each in ends)])
    high = max([*means, *(min(each, reach) for each in ends)])
    margin = 0.06 * ((high - low) or 1.0)
    return AxisScale(low - margin, high + margin, start, end)


def _frame(scale: AxisScale, bottom: float, unit: str, about: int = 5) -> str:
    zero = scale.at(0)
    ticks = {each: spell_tick(each) for each in scale.ticks(about)}
    return line(zero, TOP - 4, zero, bottom, "zero") + bottom_axis(scale, bottom, unit, ticks)


def _title(each: Estimate) -> str:
    return each.title or f"{each.label}: {each.spell()}, n = {each.n}"
