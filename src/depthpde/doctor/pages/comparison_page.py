"""Two diagnoses as one page: what changed first, both pictures, every measure of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from depthpde.doctor.depth_profile import DepthProfile, format_number
from depthpde.doctor.pages.page import (
    MARKS,
    MEASURES,
    DoctorFigure,
    draw_lines,
    firsts,
    healthy_range,
    picture,
)
from depthpde.doctor.thresholds import Grade
from depthpde.doctor.verdict import HealthVerdict, worst_grade
from depthpde.pages.figures.curves import Line
from depthpde.pages.resources import read_text
from depthpde.pages.templates import render_document

SIGNS = {"worse": "▲", "better": "▼", "new": "＋", "gone": "－", "same": "＝"}
"""A sign beside the word, so that no change depends on colour alone."""


@dataclass(frozen=True, slots=True)
class ComparedVerdict:
    """One condition in two diagnoses; a verdict is None where it was not measured."""

    condition: str
    change: str
    """worse, better, new, gone or same."""
    before: HealthVerdict | None
    after: HealthVerdict | None

    @property
    def shown(self) -> HealthVerdict:
        """The verdict that tells more: the later one, where there is one."""
        known = self.after or self.before
        assert known is not None, "one of the two is there"
        return known

    @property
    def concerns(self) -> bool:
        """Whether one of the two is not healthy."""
        both = [each for each in (self.before, self.after) if each is not None]
        return any(each.grade is not Grade.HEALTHY for each in both)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        both = [None if each is None else each.to_dict() for each in (self.before, self.after)]
        return {
            "condition": str(self.condition),
            "change": self.change,
            "before": both[0],
            "after": both[1],
        }

    def __str__(self) -> str:
        """Say it in one line: the change, the row, both numbers, what is to be seen now."""
        numbers = [
            "not measured" if each is None else f"{each.grade.value} {format_number(each.value)}"
            for each in (self.before, self.after)
        ]
        line = f"{self.change:<8}{self.shown.threshold.row}: {numbers[0]} → {numbers[1]}"
        return f"{line}; {self.shown.evidence}"


def render_comparison(
    names: tuple[str, str],
    heads: tuple[str, str],
    profiles: tuple[DepthProfile, DepthProfile],
    rows: Sequence[ComparedVerdict],
) -> str:
    """Render two diagnoses as one self-contained HTML page.

    Args:
        names: What the two are called.
        heads: What was examined, in one line each.
        profiles: What was measured.
        rows: Every condition, those that changed first.
    """
    sides = [
        [each for each in found if each is not None]
        for found in ([row.before for row in rows], [row.after for row in rows])
    ]
    grades = [worst_grade(each) for each in sides]
    return render_document(
        "depthpde.doctor.pages",
        "comparison.html",
        style=read_text("depthpde.doctor.pages", "doctor.css"),
        names=names,
        heads=heads,
        grades=[each.value for each in grades],
        changed=[each for each in rows if each.change != "same"],
        ailing=[each for each in rows if each.change == "same" and each.concerns],
        fine=[each for each in rows if each.change == "same" and not each.concerns],
        pictures=[
            picture(f"{name}: {grade.value}", profile.blocks, verdicts)
            for name, grade, profile, verdicts in zip(names, grades, profiles, sides, strict=True)
        ],
        figures=_figures(names, profiles),
        marks={grade.value: mark for grade, mark in MARKS.items()},
        signs=SIGNS,
        healthy_range=healthy_range,
        format_number=format_number,
    )


def _figures(
    names: tuple[str, str], profiles: tuple[DepthProfile, DepthProfile]
) -> list[DoctorFigure]:
    """Draw every measure that both have, the later one solid and the earlier one dashed."""
    found = []
    for title, (name, *_), log in MEASURES:
        if any(name not in each for each in profiles):
            continue
        before, after = (each[name] for each in profiles)
        lines = [
            Line(name=word, x=range(len(each)), y=firsts(each.values), role=role, dots=True)
            for word, each, role in ((names[1], after, "ours"), (names[0], before, "baseline"))
        ]
        longer = max((before, after), key=len)
        caption = f"{after.words}; solid: {names[1]}; dashed: {names[0]}"
        drawn = draw_lines(title, lines, longer.labels, caption, log=log)
        if drawn is not None:
            found.append(drawn)
    return found
