"""Plain charts as SVG text: lines over depth, and a grid of heads. No script, no library.

Colours are those of the page's own variables, so light and dark follow the reader; lines differ in
dash and points carry their number as a title, so nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 460, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 34
TICKS = 4


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line of a chart."""

    name: str
    values: Sequence[float]
    role: str
    """``ours``, ``baseline`` or ``warning``: a class of the page's style."""


def line_chart(
    labels: Sequence[str],
    lines: Sequence[ChartLine],
    *,
    log: bool = False,
    limit: float | None = None,
) -> str:
    """Draw lines over labels; what is not finite leaves a gap.

    Args:
        labels: Along the bottom.
        lines: What is drawn.
        log: Whether the height is logarithmic; then only positive values are drawn.
        limit: A threshold, drawn across.
    """
    values = [each for line in lines for each in line.values if _drawable(each, log)]
    values += [limit] if limit is not None and _drawable(limit, log) else []
    if not values:
        return ""
    low, high = _range(values, log)

    def height(value: float) -> float:
        share = (_scale(value, log) - low) / (high - low)
        return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)

    step = (WIDTH - LEFT - RIGHT) / max(1, len(labels) - 1)
    parts = [_axis(low, high, log)]
    every = max(1, math.ceil(len(labels) / 9))
    for k in range(0, len(labels), every):
        text = _short(labels[k])
        parts.append(_text(LEFT + k * step, HEIGHT - 14, text, "middle"))
    if limit is not None and _drawable(limit, log):
        y = height(limit)
        parts.append(f'<path class="limit" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
    for line in lines:
        points = [
            (LEFT + k * step, height(each), labels[k], each)
            for k, each in enumerate(line.values)
            if _drawable(each, log)
        ]
        path = "".join(
            f"{'L' if k else 'M'}{x:.1f} {y:.1f}" for k, (x, y, _, _) in enumerate(points)
        )
        parts.append(f'<path class="line {line.role}" d="{path}"/>')
        parts += [
            f'<circle class="{line.role}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
            f"<title>{escape(f'{line.name}, {label}: {value:.3g}')}</title></circle>"
            for x, y, label, value in points
        ]
    return _svg("".join(parts), WIDTH, HEIGHT)


def grid_chart(labels: Sequence[str], rows: Sequence[Sequence[float]], column: str) -> str:
    """Draw numbers in [0, 1] as a grid of cells, one row a label.

    Args:
        labels: Of the rows.
        rows: The numbers.
        column: What a column is, such as ``head``.
    """
    columns = max((len(row) for row in rows), default=0)
    if not columns:
        return ""
    wide, high = min(56.0, (WIDTH - LEFT - RIGHT) / columns), 22
    parts = []
    for k, (label, row) in enumerate(zip(labels, rows, strict=True)):
        parts.append(_text(LEFT - 6, TOP + k * high + 15, _short(label), "end"))
        for j, value in enumerate(row):
            known = math.isfinite(value)
            x, y = LEFT + j * wide, TOP + k * high
            said = f"{label}, {column} {j + 1}: {value:.3f}" if known else f"{label}: not measured"
            share = max(0.0, min(1.0, value)) if known else 0.0
            parts.append(
                f'<rect class="cell" x="{x:.1f}" y="{y}" width="{wide - 2:.1f}" '
                f'height="{high - 2}" style="fill-opacity:{0.08 + 0.5 * share:.2f}">'
                f"<title>{escape(said)}</title></rect>"
            )
            if wide >= 24 and known:
                text = f"{value:.2f}".removeprefix("0") if value < 1 else "1"
                parts.append(_text(x + wide / 2 - 1, y + 14, text, "middle", "number"))
    height = TOP + len(rows) * high + 18
    parts.append(_text(LEFT, height - 4, f"{column}s 1 … {columns}", "start"))
    return _svg("".join(parts), WIDTH, height)


def _axis(low: float, high: float, log: bool) -> str:
    parts = []
    for k in range(TICKS + 1):
        at = low + (high - low) * k / TICKS
        y = TOP + (1 - k / TICKS) * (HEIGHT - TOP - BOTTOM)
        value = 10**at if log else at
        parts.append(f'<path class="rule" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{value:.3g}".replace("-", "−"), "end"))
    return "".join(parts)


def _range(values: Sequence[float], log: bool) -> tuple[float, float]:
    """Choose the ends of the height so that the rules between them are at round numbers."""
    scaled = [_scale(each, log) for each in values]
    low, high = min(scaled), max(scaled)
    if not log and 0 <= low < 0.5 * high:
        low = 0.0
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.5, high + 0.5
    if log:
        return low, high
    size = 10.0 ** math.floor(math.log10((high - low) / TICKS))
    for step in (size, 1.5 * size, 2 * size, 2.5 * size, 3 * size, 4 * size, 5 * size, 10 * size):
        start = step * math.floor(low / step + 1e-9)
        if start + TICKS * step >= high - 1e-9 * step:
            return start, start + TICKS * step
    return low, high


def _scale(value: float, log: bool) -> float:
    return math.log10(value) if log else value


def _drawable(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _short(label: str) -> str:
    return {"embedding": "input"}.get(label, label.removeprefix("block "))


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(inside: str, width: float, height: float) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-hidden="true">{inside}</svg>'
