"""HealthVerdict: the grade of one condition in a model, with its evidence and advice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.thresholds import Grade, Threshold

ORDER = (Grade.ILL, Grade.WATCH, Grade.HEALTHY)


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """The grade of one condition."""

    condition: str
    grade: Grade
    symptom: Symptom
    threshold: Threshold
    by_design: bool = False
    """Whether a new model of the same class of a library shows it too: then it is watched."""

    @property
    def value(self) -> float:
        """The number it is known by."""
        return self.symptom.value

    @property
    def evidence(self) -> str:
        """What was found, in one sentence."""
        tail = "; a new model of this class shows it too: its design" * self.by_design
        return f"{self.symptom.evidence}{tail}"

    @property
    def component(self) -> str:
        """The part of a Transformer at fault."""
        return self.symptom.component or self.threshold.component

    @property
    def advice(self) -> str:
        """What to do; empty for the healthy."""
        limit = self.threshold
        if self.grade is Grade.HEALTHY:
            return ""
        text = limit.advice if self.grade is Grade.ILL else limit.mild or limit.advice
        return text.replace("{where}", self.symptom.where or "the model")

    @property
    def severity(self) -> float:
        """How far the number is on its way from healthy (0) past watch (1) to ill (2) and on.

        1 + log(value / watch) / log(ill / watch),    linear where a limit is not positive
        """
        found = severity(self.threshold, self.value)
        return min(1.0, found) if self.by_design else found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the limits the grade rests on."""
        limit = self.threshold
        return {
            "condition": str(self.condition),
            "row": limit.row,
            "grade": self.grade.value,
            "value": self.value if math.isfinite(self.value) else None,
            "evidence": self.symptom.evidence,
            "where": self.symptom.where,
            "by_design": self.by_design,
            "component": self.component,
            "severity": round(self.severity, 4),
            "sign": limit.sign,
            "worse": limit.worse,
            "watch": limit.watch,
            "ill": limit.ill,
            "healthy": [each if math.isfinite(each) else None for each in limit.healthy],
            "advice": self.advice,
            "why": limit.why,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> HealthVerdict:
        """Read what `to_dict` wrote; a value that is not there was not finite."""
        low, high = (math.nan if each is None else each for each in plain["healthy"])
        names = ("row", "sign", "worse", "watch", "ill", "advice", "component", "why")
        limit = Threshold(healthy=(low, high), **{name: plain[name] for name in names})
        value = math.inf if plain["value"] is None else plain["value"]
        symptom = Symptom(value, plain["evidence"], plain["where"], plain["component"])
        return cls(
            plain["condition"], Grade(plain["grade"]), symptom, limit, bool(plain.get("by_design"))
        )


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


def severity(limit: Threshold, value: float) -> float:
    """Grade a number continuously: 1 at watch, 2 at ill, between 0 and 4."""
    if math.isnan(value):
        return 4.0
    flip = 1.0 if limit.worse == "high" else -1.0
    watch, ill = limit.watch, limit.ill
    if watch == ill:
        return 2.0 if flip * value >= flip * ill else 0.0
    if min(watch, ill) > 0 and value > 0:
        share = math.log(value / watch) / math.log(ill / watch) if value < math.inf else 9.0
    elif min(watch, ill) > 0:  # nothing at all: the far end of low, the near end of high
        share = 9.0 if limit.worse == "low" else -9.0
    else:
        share = (value - watch) / (ill - watch)
    return min(4.0, max(0.0, 1.0 + share))
