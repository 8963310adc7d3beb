"""A picture of the model: embedding, blocks, output; what is ill is marked by a sign and a word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from depthpde.doctor.thresholds import Grade
from depthpde.doctor.verdict import HealthVerdict
from depthpde.pages.svg import drawing, element, group, line, text

WIDTH, ROW, GAP, LEFT, NAME = 272.0, 26.0, 10.0, 12.0, 64.0
"""Of the drawing, in pixels; NAME is the width of a block's name."""
PARTS = {"attention": 0.455, "feed-forward": 0.545}
"""Of a block, with the share of its width that the word and a mark need."""
MOST_BLOCKS = 8
"""Blocks that are drawn; of more, the first, the last and those that are marked."""
ATTENTION = ("q, k, v", "score", "masking", "variant", "kernel", "KV cache")
REACTION = ("feed-forward",)
MARKS = {Grade.ILL: "✗", Grade.WATCH: "!"}


def model_picture(blocks: int, verdicts: Sequence[HealthVerdict]) -> str:
    """Draw the model with what is ill, or worth watching, marked where it is.

    Args:
        blocks: How many the model has.
        verdicts: Those that name a place are marked there.
    """
    marks: dict[str, Grade] = {}
    for each in reversed(list(verdicts)):  # the worst last, so that it stays
        if each.grade is not Grade.HEALTHY:
            marks[place_of(each, blocks)] = each.grade
    rows = ["output", *(f"block {k}" for k in _shown(blocks, marks)), "embedding"]
    parts, y, before = [], 8.0, 0
    for row in rows:
        number = int(row.split()[1]) if row.startswith("block") else 0
        if number and before and before - number > 1:
            parts.append(text(WIDTH / 2, y + 8, f"… {before - number - 1} more", "tick", "middle"))
            y += 18
        before = number or before
        parts.append(_row(row, y, marks, blocks))
        y += ROW + GAP
        if row != rows[-1]:
            parts.append(line(WIDTH / 2, y - GAP, WIDTH / 2, y, "axis"))
    return drawing(WIDTH, y, *parts, title="the model, and where it is ill")


def place_of(verdict: HealthVerdict, blocks: int) -> str:
    """Name the place that a verdict speaks of: embedding, block k with its part, output."""
    where, part = verdict.symptom.where, verdict.component
    found = re.search(r"(?:^|\D)(\d+)(?:\D|$)", where)
    if found is not None:
        named = where.startswith("block ") or " of block " in where
        number = int(found.group(1)) + (0 if named else 1)
        half = " attention" if part in ATTENTION else " feed-forward" if part in REACTION else ""
        if "attention of" in where:
            half = " attention"
        elif "feed-forward of" in where:
            half = " feed-forward"
        return f"block {min(max(number, 1), blocks)}{half}"
    if part in ("embedding", "positions") or where == "embedding":
        return "embedding"
    return "output" if part == "output" else "model"


def _shown(blocks: int, marks: dict[str, Grade]) -> list[int]:
    """Choose the blocks that are drawn, the last first."""
    everything = list(range(blocks, 0, -1))
    if blocks <= MOST_BLOCKS:
        return everything
    marked = {int(name.split()[1]) for name in marks if name.startswith("block")}
    chosen = {1, 2, blocks - 1, blocks, *sorted(marked)[: MOST_BLOCKS - 4]}
    return [each for each in everything if each in chosen]


def _row(row: str, y: float, marks: dict[str, Grade], blocks: int) -> str:
    if not row.startswith("block"):
        return _box(LEFT, y, WIDTH - 2 * LEFT, row, marks.get(row) or _whole(row, marks))
    left = LEFT + NAME
    whole = marks.get(row)
    parts = [text(LEFT, y + 17, row if whole is None else f"{MARKS[whole]} {row}",
                  "tick" if whole is None else "marked")]  # fmt: skip
    if whole is not None:  # a frame round the block, where no part of it is named
        frame = {"x": LEFT - 8, "y": y - 4, "width": WIDTH - 2 * LEFT + 12, "height": ROW + 8}
        parts.insert(0, element("rect", **frame, rx=6.0, kind=f"part {whole.value}"))
    for name, share in PARTS.items():
        width = share * (WIDTH - 2 * LEFT - NAME)
        parts.append(_box(left, y, width - 4, name, marks.get(f"{row} {name}")))
        left += width
    return group(*parts)


def _whole(row: str, marks: dict[str, Grade]) -> Grade | None:
    """Give what concerns the whole model to its output."""
    return marks.get("model") if row == "output" else None


def _box(x: float, y: float, width: float, words: str, grade: Grade | None) -> str:
    kind = "part" if grade is None else f"part {grade.value}"
    label = words if grade is None else f"{MARKS[grade]} {words}"
    title = words if grade is None else f"{words}: {grade.value}"
    return group(
        element("rect", x=x, y=y, width=width, height=ROW, rx=4.0, kind=kind),
        text(x + width / 2, y + 17, label, "marked" if grade is Grade.ILL else "tick", "middle"),
        title=title,
    )
