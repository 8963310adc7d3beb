"""Differences as a table of tinted squares: the number in each, the tint for the eye."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from depthpde.pages.svg import drawing, element, group, room_for, shorten, text

CELL, ROW, TOP = 78.0, 27.0, 24.0
DEEPEST = 0.5
"""Opacity of the largest difference: text on it keeps its contrast."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tint:
    """One square."""

    value: float
    """Sign and size give the tint."""
    text: str
    strong: bool = False
    """Framed: an interval that leaves out zero."""
    title: str = ""
    href: str = ""


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], Tint],
    *,
    title: str = "Difference from the baseline by task",
    labels: Mapping[str, str] | None = None,
    largest: float | None = None,
    cell: float = CELL,
) -> str:
    """Draw rows by columns; blue is positive, red negative, a frame is sure, a dash is missing.

    Args:
        rows: Names of the rows.
        columns: Names of the columns.
        cells: Row and column → square.
        title: What the figure is.
        labels: Row → what is written for it; the row's name if not given.
        largest: The number with the deepest tint; the largest of the squares if not given.
        cell: Width of a square in pixels.
    """
    names = {row: shorten((labels or {}).get(row, row)) for row in rows}
    left = room_for(list(names.values())) + 14
    most = largest or max((abs(each.value) for each in cells.values()), default=0.0) or 1.0
    parts = [
        text(left + cell * (j + 0.5), 14, name, "head", "middle") for j, name in enumerate(columns)
    ]
    for i, row in enumerate(rows):
        y = TOP + ROW * i
        parts.append(text(0, y + ROW / 2 + 4, names[row]))
        for j, column in enumerate(columns):
            x = left + cell * j
            parts.append(_square(cells.get((row, column)), x, y, cell, most))
    described = "; ".join(
        f"{names[row]} on {column} {cells[row, column].text}"
        for row in rows
        for column in columns
        if (row, column) in cells
    )
    size = (left + cell * len(columns), TOP + ROW * len(rows) + 4)
    return drawing(*size, *parts, title=title, description=described, links=True)


def _square(each: Tint | None, x: float, y: float, wide: float, largest: float) -> str:
    middle = (x + wide / 2, y + ROW / 2 + 4)
    if each is None:
        return text(*middle, "–", "quiet on", "middle")
    kind = "up" if each.value > 0 else "down" if each.value < 0 else "none"
    depth = DEEPEST * min(abs(each.value) / largest, 1.0)
    parts = [
        element(
            "rect", x=x + 1.5, y=y + 1.5, width=wide - 3, height=ROW - 3, rx=2.0, kind=kind,
            fill_opacity=depth,
        ),
        text(*middle, each.text, "strong on" if each.strong else "on", "middle"),
    ]  # fmt: skip
    if each.strong:
        parts.append(
            element(
                "rect", x=x + 2.5, y=y + 2.5, width=wide - 5, height=ROW - 5, rx=2.0, kind="clear",
                stroke_opacity=0.45,
            )
        )  # fmt: skip
    return group(*parts, title=each.title, href=each.href)
