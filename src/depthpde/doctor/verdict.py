"""HealthVerdict: the grade of one condition in a model, with its evidence and advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from depthpde.doctor.condition import Condition
from depthpde.doctor.thresholds import Grade, Threshold

ORDER = (Grade.ILL, Grade.WATCH, Grade.HEALTHY)


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """The grade of one condition."""

    condition: Condition
    grade: Grade
    value: float
    """The number it is known by."""
    evidence: str
    threshold: Threshold

    @property
    def advice(self) -> str:
        """What to do; empty for the healthy."""
        limit = self.threshold
        return {Grade.HEALTHY: "", Grade.WATCH: limit.mild, Grade.ILL: limit.advice}[self.grade]


def worst_first(verdicts: Sequence[HealthVerdict]) -> tuple[HealthVerdict, ...]:
    """Order verdicts by grade, the worst first; equal ones stay as they come."""
    return tuple(sorted(verdicts, key=lambda each: ORDER.index(each.grade)))


def worst_grade(verdicts: Sequence[HealthVerdict]) -> Grade:
    """Give the worst grade; healthy where there is no verdict."""
    return min((each.grade for each in verdicts), key=ORDER.index, default=Grade.HEALTHY)


def one_a_row(verdicts: Sequence[HealthVerdict]) -> list[HealthVerdict]:
    """Keep one verdict a row: where two conditions share one, the first one."""
    shown: dict[str, HealthVerdict] = {}
    for each in verdicts:
        shown.setdefault(each.threshold.row, each)
    return list(shown.values())
