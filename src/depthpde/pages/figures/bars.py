"""Bars side by side, such as the energy in four bands of frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from depthpde.pages.svg import AxisScale, drawing, element, group, left_axis, line, text

LEFT, TOP = 40.0, 30.0
KINDS = ("mark-control", "mark-ours", "mark-baseline")
"""Open, full and grey: the first is what was, the second what became of it."""


def bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    y_label: str = "",
    y_range: tuple[float, float] | None = None,
    width: float = 360.0,
    height: float = 200.0,
) -> str:
    """Draw a group of bars for each name, one bar a series.

    Args:
        groups: Names along the bottom.
        series: Name → one number for each group; at most three.
        title: What the figure is.
        y_label: What runs up the side.
        y_range: Ends of the side; from 0 to the largest number if not given.
        width: In pixels.
        height: In pixels.
    """
    bottom = height - 28
    largest = max((v for each in series.values() for v in each), default=1.0) or 1.0
    up = AxisScale(*(y_range or (0.0, 1.06 * largest)), bottom, TOP)
    step = (width - LEFT - 8) / max(len(groups), 1)
    thick = min(26.0, 0.7 * step / max(len(series), 1))
    parts = [left_axis(up, LEFT, width - 8), line(LEFT, bottom, width - 8, bottom, "axis")]
    if y_label:
        parts.append(text(0, TOP - 10, y_label, "tick"))
    x = LEFT + 70 if y_label else LEFT
    for name, kind in zip(series, KINDS, strict=False):
        parts += [
            element("rect", x=x, y=TOP - 19, width=9.0, height=9.0, kind=kind),
            text(x + 14, TOP - 10, name, "tick"),
        ]
        x += 30 + 6.5 * len(name)
    for i, name in enumerate(groups):
        middle = LEFT + step * (i + 0.5)
        parts.append(text(middle, bottom + 16, name, "tick", "middle"))
        for j, (which, kind) in enumerate(zip(series, KINDS, strict=False)):
            value = series[which][i]
            y = up.at(value)
            x = middle + thick * (j - len(series) / 2)
            bar = element(
                "rect", x=x + 1, y=y, width=thick - 2, height=max(bottom - y, 0.5), kind=kind
            )
            parts.append(group(bar, title=f"{which}, {name}: {value:.3g}"))
    said = "; ".join(
        f"{which}: {', '.join(f'{name} {v:.3g}' for name, v in zip(groups, each, strict=True))}"
        for which, each in series.items()
    )
    return drawing(width, height, *parts, title=title, description=said)
