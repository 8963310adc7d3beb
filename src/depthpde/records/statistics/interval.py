"""Interval: two numbers, how often such intervals hold the truth, and how they came about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class IntervalMethod(StrEnum):
    """How an interval comes about."""

    AUTO = "auto"
    """Student's t below 50 numbers, BCa from there on."""
    STUDENT = "student"
    """Mean ± t · s / √n; exact for normal numbers at any n."""
    BCA = "bca"
    """Bootstrap, bias-corrected and accelerated; for large samples of any shape."""
    PERCENTILE = "percentile"
    """Plain bootstrap quantiles; where BCa is not defined."""
    EXACT = "exact"
    """From the binomial distribution; for a rate, never for a mean."""
    SIGN_FLIP = "sign flip"
    """The values that a sign-flip test does not reject; exact for symmetric differences."""
    WELCH = "welch"
    """Mean of task means ± t_ν · e, ν by Welch and Satterthwaite; for several tasks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A confidence interval and how it came about.

    0.0 in Interval(low=-0.2, high=0.4, level=0.95, method=IntervalMethod.STUDENT)   # True
    """

    low: float
    high: float
    level: float
    """Share of such intervals that hold the truth, if the method's conditions are met."""
    method: IntervalMethod
    """The method that ran, never AUTO."""
    note: str = ""
    """What a reader must know, such as a fallback; empty if nothing."""

    def __contains__(self, value: float) -> bool:
        """Return whether the interval holds a value."""
        return self.low <= value <= self.high
