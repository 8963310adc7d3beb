"""Thresholds: from which number on a sign is worth watching, and from which it is a condition.

They are data (``thresholds.json``), found by calibration on healthy models and models broken on
purpose (docs/doctor.md), and can be replaced by a file of the same form.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any

from depthpde.doctor.conditions.condition import Condition
from depthpde.doctor.conditions.table import CONDITIONS, Measure

FILE = "thresholds.json"


class Grade(StrEnum):
    """The grade of a symptom, the best first.

    >>> [str(grade) for grade in dp.Grade]
    ['healthy', 'watch', 'ill']
    """

    HEALTHY = "healthy"
    WATCH = "watch"
    ILL = "ill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Where one condition begins, and what to do about it.

    >>> limit = dp.Threshold(row="loudness", sign="size of the last block", worse="high",
    ...                      watch=5.0, ill=10.0, advice="lower the gain of {where}")
    """

    row: str
    """What its row is called in a diagnosis."""
    sign: str
    """What the number is."""
    worse: str
    """``high`` or ``low``: which end is bad."""
    watch: float
    ill: float
    advice: str
    """What to do about the condition; ``{where}`` stands for the module or block at fault."""
    mild: str = ""
    """What to do where it is only worth watching; the advice itself if empty."""
    healthy: tuple[float, float] = (math.nan, math.nan)
    """Least and greatest number of the healthy models of the calibration."""
    broken: tuple[float, float] = (math.nan, math.nan)
    """The same of the models broken in this way."""
    component: str = ""
    """The part of a Transformer that is usually at fault."""
    why: str = ""
    """The section of docs/troubleshooting.md that explains it."""

    def grade(self, value: float) -> Grade:
        """Return the grade of a number."""
        flip = 1.0 if self.worse == "high" else -1.0
        if math.isnan(value) or flip * value >= flip * self.ill:
            return Grade.ILL
        return Grade.WATCH if flip * value >= flip * self.watch else Grade.HEALTHY


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All thresholds.

    >>> thresholds = dp.Thresholds.read()   # the package's own; read(path) takes a file of yours
    """

    entropy_floor: float
    """Share of log n under which a head counts as looking at one token."""
    of: dict[str, Threshold]

    @classmethod
    def read(cls, path: str | Path | None = None) -> Thresholds:
        """Read thresholds from a file; from the package's own by default."""
        source = files("depthpde.doctor") / FILE if path is None else Path(path)
        try:
            values = json.loads(source.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"`{path}` must be JSON with thresholds, got {error}") from error
        return cls.from_dict(values, str(path or FILE))

    @classmethod
    def from_dict(cls, values: Any, name: str = FILE) -> Thresholds:
        """Build thresholds from the values of a file."""
        try:
            rows = {
                Condition(condition): dict(row) for condition, row in values["thresholds"].items()
            }
            of = {
                condition: Threshold(
                    **row
                    | {name: _range(row[name]) for name in ("healthy", "broken") if name in row}
                )
                for condition, row in rows.items()
            }
            missing = [condition.value for condition in Condition if condition not in of]
            if missing:
                raise ValueError(f"without {', '.join(missing)}")
            return cls(
                float(values["entropy_floor"]), {str(name): each for name, each in of.items()}
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"`{name}` must hold thresholds for every condition, got {error}; "
                "start from depthpde/doctor/thresholds.json"
            ) from error


OWN: dict[str, Threshold] = {}
"""Of conditions that were registered."""


def register_condition(name: str, measure: Measure, threshold: Threshold) -> None:
    """Add a condition of one's own to every later diagnosis; the same name replaces it.

    >>> def loud(seen):
    ...     return dp.Symptom(seen["energy.size"][-1], "the last block is loud", where="last block")
    >>> limit = dp.Threshold(row="loudness", sign="size of the last block", worse="high",
    ...                      watch=50.0, ill=100.0, advice="lower the gain of {where}")
    >>> dp.register_condition("loud end", loud, limit)

    Args:
        name: What is wrong, as it stands in `Diagnosis.conditions`.
        measure: Takes a `DepthProfile`; gives a `Symptom`, `NotMeasured` with the reason, or None
            where the condition does not concern the model.
        threshold: From which number on it is watched and ill, and what to do.
    """
    if name in set(Condition):
        raise ValueError(
            f"`name` must be one of your own, got {name!r}, which is built in; give it another "
            "name, or change its threshold with Thresholds.read(path)"
        )
    CONDITIONS[name], OWN[name] = measure, threshold


def _range(ends: list[float | None]) -> tuple[float, float]:
    """Read a range; JSON knows no infinity, so null means infinity."""
    low, high = (math.inf if each is None else float(each) for each in ends)
    return low, high
