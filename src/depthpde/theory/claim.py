"""A claim, the numbers that test it, and the verdict.

    verdict = every check holds  ∧  the same check fails on the counter-example

A check that nothing could fail proves nothing. So every claim brings a counter-example: a system
that breaks one hypothesis of the theorem, measured in the same way, which the check must reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from depthpde.threads import one_thread


class Relation(StrEnum):
    """How the measured number must stand to the predicted one."""

    EQUAL = "="
    AT_MOST = "≤"
    AT_LEAST = "≥"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One number predicted by a formula beside the same number measured."""

    quantity: str
    """What was measured, in words."""
    predicted: float
    """What the formula says."""
    measured: float
    """What the computation gave."""
    comparison: Relation = Relation.EQUAL
    """How the two must stand to each other."""
    tolerance: float = 0.0
    """Absolute slack, for rounding or for a fit."""

    @property
    def holds(self) -> bool:
        """Whether the measured number stands as predicted; never for NaN."""
        excess = self.measured - self.predicted
        if self.comparison is Relation.EQUAL:
            return abs(excess) <= self.tolerance
        if self.comparison is Relation.AT_MOST:
            return excess <= self.tolerance
        return excess >= -self.tolerance


class LineRole(StrEnum):
    """What a line of a plot stands for; the page chooses the look."""

    OURS = "ours"
    BASELINE = "baseline"
    FORMULA = "formula"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One labelled line (or group of bars) of a plot."""

    name: str
    """What the legend says."""
    x: tuple[float | str, ...]
    """Where."""
    y: tuple[float, ...]
    """How much."""
    role: LineRole = LineRole.OURS
    """What it stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What a claim has to show."""

    title: str
    """The finding in a few words."""
    x_label: str
    """Quantity and unit of the horizontal axis."""
    y_label: str
    """Quantity and unit of the vertical axis."""
    series: tuple[Series, ...]
    """The lines."""
    description: str
    """The text alternative: what a person would see."""
    log_x: bool = False
    """Whether the horizontal axis is logarithmic."""
    log_y: bool = False
    """Whether the vertical axis is logarithmic."""
    bars: bool = False
    """Whether to draw bars instead of lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEvidence:
    """What a measurement brings home."""

    checks: tuple[Check, ...]
    """The first is the headline; all must hold."""
    plots: tuple[Plot, ...] = ()
    """What there is to see."""


class TheoryVerdict(StrEnum):
    """What the numbers say about a claim."""

    HOLDS = "holds"
    """Every check holds and the counter-example is rejected."""
    FAILS = "fails"
    """A check does not hold."""
    BLIND = "blind"
    """The checks hold, but the counter-example passes too: the check proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of the papers, how to test it, and what would break it."""

    name: str
    """How a person asks for it."""
    statement: str
    """The claim in one sentence."""
    equation: str
    """The claim in symbols."""
    source: str
    """Where it is stated: the paper's theorem, or our own definition."""
    measure: Callable[[], ClaimEvidence]
    """Predict and measure."""
    counterexample: str
    """The system that breaks a hypothesis, in words."""
    refute: Callable[[], Check]
    """The same check on the counter-example; it must not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A claim with its numbers."""

    name: str
    """The claim's name."""
    statement: str
    """The claim in one sentence."""
    equation: str
    """The claim in symbols."""
    source: str
    """Where it is stated."""
    checks: tuple[Check, ...]
    """The first is the headline."""
    counterexample: str
    """What broke a hypothesis."""
    refutation: Check
    """The check that must not hold."""
    plots: tuple[Plot, ...]
    """What there is to see."""

    @property
    def verdict(self) -> TheoryVerdict:
        """Judge the numbers."""
        if not all(check.holds for check in self.checks):
            return TheoryVerdict.FAILS
        return TheoryVerdict.BLIND if self.refutation.holds else TheoryVerdict.HOLDS

    def as_json(self) -> dict[str, Any]:
        """Give the finding as plain values, verdict included."""
        record = asdict(self)
        for check, plain in zip(self.checks, record["checks"], strict=True):
            plain["holds"] = check.holds
        record["refutation"]["holds"] = self.refutation.holds
        return {"verdict": self.verdict.value, **record}


def examine(claim: Claim) -> Finding:
    """Measure a claim and its counter-example.

    Deterministic: every random field has its own seeded stream, and one thread does the sums, so
    that their order is the same on every machine (and small matrices never wait for a second).
    """
    with one_thread():
        evidence, refutation = claim.measure(), claim.refute()
    return Finding(
        name=claim.name,
        statement=claim.statement,
        equation=claim.equation,
        source=claim.source,
        checks=evidence.checks,
        counterexample=claim.counterexample,
        refutation=refutation,
        plots=evidence.plots,
    )


def line(
    name: str, x: Sequence[float], y: Sequence[float], role: LineRole = LineRole.OURS
) -> Series:
    """Make a series of plain floats out of lists or tensors, rounded to seven digits."""
    return Series(
        name=name,
        x=tuple(_round(float(each)) for each in x),
        y=tuple(_round(float(each)) for each in y),
        role=role,
    )


def _round(value: float) -> float:
    return float(f"{value:.7g}") if math.isfinite(value) else value
