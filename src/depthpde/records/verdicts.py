"""One scale of verdicts for every claim, and one rule that gives them.

    supported             the whole 95 % interval is beyond the claim's own mark, or beyond 0 on the
                          claimed side with the claimed size not beyond its far end
    smaller than claimed  the right side of 0, the claimed size (or mark) beyond the far end
    contradicted          the whole interval is on the other side of 0
    equivalent            two one-sided tests: the difference lies within the named margin
    inconclusive          anything else; what the pairs would have shown is said

A side of 0 counts as shown where the interval lies on it *and* the exact p of that side, after the
correction that was named, is at most 5 %. The side comes first: an effect that is shown and small
is *smaller than claimed*, not *equivalent*. Below six pairs on a task there is no interval that
keeps its coverage: inconclusive, "cannot be told from n pairs".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from depthpde.records.statistics.combination import (
    combined_interval,
    combined_mean,
    directed_test,
)
from depthpde.records.statistics.equivalence import Equivalence, equivalence
from depthpde.records.statistics.fixed_order import in_fixed_order
from depthpde.records.statistics.interval import Interval
from depthpde.records.statistics.power import detectable, power_sentence
from depthpde.records.statistics.samples import Differences, check_strata
from depthpde.records.statistics.survival import EscapeTime, log_rank_test

LEVEL = 0.05
UPDATES = "updates"
"""The unit of escape times."""


class Outcome(StrEnum):
    """The scale.

    >>> print(dp.Outcome.EQUIVALENT)
    equivalent
    """

    SUPPORTED = "supported"
    SMALLER = "smaller than claimed"
    CONTRADICTED = "contradicted"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    WAITING = "not judged yet"
    """No verdict: the first look that its protocol names has not come."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """What was claimed of a mean difference.

    >>> raises = dp.Hypothesis(sign=1, size=4.07)     # by 4.07 points
    >>> same = dp.Hypothesis(sign=0, margin=0.75)     # changes nothing that matters
    """

    sign: int = 1
    """1: positive; −1: negative; 0: the same."""
    size: float | None = None
    """The claimed size, without sign; None where none was named."""
    mark: float = 0.0
    """What the whole interval must be beyond, without sign; 0 where only a side was claimed."""
    margin: float = 0.5
    """Below which a difference does not matter; choose it before you look, or say you did not."""

    def __post_init__(self) -> None:
        """Refuse what could not be judged."""
        if self.sign not in (-1, 0, 1):
            raise ValueError(
                f"`sign` must be −1, 0 or 1, got {self.sign!r}; 0 claims no difference"
            )
        if self.mark < 0 or (self.size is not None and self.size <= 0):
            raise ValueError(
                f"`mark` and `size` must be without sign, got {self.mark!r} and {self.size!r}; "
                "give the side by `sign`"
            )
        if self.size is not None and self.mark:
            raise ValueError(
                f"`size` {self.size:g} and `mark` {self.mark:g} are two claims; judge one at a time"
            )
        if not self.margin > 0:
            raise ValueError(f"`margin` must be above 0, got {self.margin!r}; name what matters")


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A claim, judged.

    >>> found = dp.judge({"a": [1.0, 2.0, 1.5, 1.2, 1.8, 1.4]}, dp.Hypothesis(sign=1))
    >>> isinstance(found, dp.Verdict), found.n
    (True, 6)
    """

    outcome: Outcome
    hypothesis: Hypothesis
    effect: float
    """Mean difference over tasks; for escapes the mean difference of the times."""
    interval: Interval | None
    """At 95 %; None where none would keep its coverage."""
    p: float | None
    """Of what was claimed, corrected if the verdict was; None where nothing was tested. Behind a
    closed gate it is that of the gate: no p of this claim."""
    n: int
    """Pairs, over all tasks."""
    tasks: int
    equivalence: Equivalence | None
    """Within the hypothesis's margin; None where it could not be tested."""
    least: float | None
    """The difference that such pairs show with 80 %; None where they can show none."""
    unit: str = "points"
    closed_by: str = ""
    """The contrast of a fixed order that closed the gate to this one; empty if none did."""

    @property
    def power(self) -> str:
        """What the pairs would have shown, in a sentence."""
        return power_sentence(self.n, self.least, unit=self.unit)

    @property
    def size_excluded(self) -> bool:
        """Whether the claimed size or mark lies beyond the interval's far end."""
        if self.interval is None or not self.hypothesis.sign:
            return False
        wanted = self.hypothesis.size or self.hypothesis.mark
        return 0 < wanted > max(self.hypothesis.sign * end for end in _ends(self.interval))

    def sentence(self) -> str:
        """Say the verdict, its numbers and the power in one line."""
        found = f"{self.outcome}: {self._spell(self.effect)} {self.unit}"
        if self.interval is not None:
            found += f" [{', '.join(map(self._spell, _ends(self.interval)))}]"
        found += f", {self.n} pairs" + (f" on {self.tasks} tasks" if self.tasks > 1 else "")
        if self.p is not None and not self.closed_by:
            same = "" if self.hypothesis.sign else "of equivalence "
            found += f", p {same}= {self.p:.2g}"
        return "; ".join([found, *self.remarks(), self.power]).replace("-", "−")

    def remarks(self) -> list[str]:
        """Return what a reader would ask next."""
        found = []
        if self.outcome is Outcome.EQUIVALENT:
            found.append(f"within ±{self.hypothesis.margin:g}")
        if self.outcome is Outcome.INCONCLUSIVE:
            clear = self.interval is not None and 0.0 not in self.interval
            if self.size_excluded and not clear:
                found.append("the claimed size is excluded, its sign is open")
            if clear and self.p is not None and self.p > LEVEL and not self.closed_by:
                found.append(
                    "interval and test disagree: a few tasks carry the mean"
                    if self.hypothesis.sign
                    else f"0 lies outside the interval; whether within ±{self.hypothesis.margin:g} "
                    "is open"
                )
        if self.closed_by:
            found.append(f"not reached: {self.closed_by} was not shown")
        return found

    def _spell(self, value: float) -> str:
        """Write a number with its sign, to a tenth of the interval's width."""
        width = 0.0 if self.interval is None else self.interval.high - self.interval.low
        digits = max(2, 1 - math.floor(math.log10(width))) if width > 0 else 2
        return f"{value:+.{min(digits, 6)}f}"


def judge(
    differences: Differences, hypothesis: Hypothesis, *, test: bool = True, unit: str = "points"
) -> Verdict:
    """Judge a claim about a mean difference over tasks.

    >>> pairs = {"listops": [1.4, 1.9, 1.1, 2.0, 1.7, 1.5]}
    >>> print(dp.judge(pairs, dp.Hypothesis(size=4.07)).outcome)
    smaller than claimed

    Args:
        differences: Task → paired differences. Leave tasks out that are learned at once or not yet:
            `judge_escape` is for those.
        hypothesis: What was claimed.
        test: Whether the numbers are differences of exchangeable pairs; False for measurements of
            one system, which only have an interval.
        unit: Of the differences.
    """
    strata = check_strata(differences)
    same = equivalence(differences, hypothesis.margin)
    p = None
    if test:
        p = directed_test(differences) if hypothesis.sign else (same.p if same else None)
    found = Verdict(
        outcome=Outcome.INCONCLUSIVE,
        hypothesis=hypothesis,
        effect=combined_mean(differences),
        interval=combined_interval(differences),
        p=p,
        n=sum(len(each) for each in strata),
        tasks=len(strata),
        equivalence=same,
        least=detectable(differences),
        unit=unit,
    )
    return replace(found, outcome=_outcome(found))


def judge_escape(
    variant: Mapping[int, EscapeTime], baseline: Mapping[int, EscapeTime], *, sooner: bool
) -> Verdict:
    """Judge a claim that a variant leaves a plateau sooner, or later, than its baseline.

        effect    mean over pairs of the difference of times, those on the plateau at the end
                  counted with the last update
        p         the log-rank test, exchanged within pairs

    There is no interval: how long a run would have stayed, its record does not say.

    Args:
        variant: Seed → escape time.
        baseline: Likewise.
        sooner: Whether the claim is that the variant escapes sooner.
    """
    p = log_rank_test(variant, baseline)
    seeds = sorted(set(variant) & set(baseline))
    effect = float(np.mean([variant[s].update - baseline[s].update for s in seeds]))
    found = Verdict(
        outcome=Outcome.INCONCLUSIVE,
        hypothesis=Hypothesis(sign=-1 if sooner else 1),
        effect=effect,
        interval=None,
        p=p,
        n=len(seeds),
        tasks=1,
        equivalence=None,
        least=None,
        unit=UPDATES,
    )
    return replace(found, outcome=_outcome(found))


def judged_in_order(verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Judge contrasts in the order that was named before: each is a gate to the next.

    Args:
        verdicts: Contrast → verdict by itself, in that order; each must have a p.
    """
    gates = in_fixed_order({name: _p(name, each) for name, each in verdicts.items()})
    found = {}
    for name, each in verdicts.items():
        gated = replace(each, closed_by=gates[name].closed_by)
        found[name] = with_p(gated, gates[name].adjusted)
    return found


def with_p(verdict: Verdict, p: float) -> Verdict:
    """Return the verdict that follows once p is corrected, by Holm's method for one.

    Args:
        verdict: With the p of its claim alone.
        p: The corrected one.
    """
    corrected = replace(verdict, p=p)
    return replace(corrected, outcome=_outcome(corrected))


def _p(name: str, verdict: Verdict) -> float:
    if verdict.p is None:
        raise ValueError(
            f"`verdicts` must have a p to be tested in order, got none for {name!r} with "
            f"{verdict.n} pairs; give it six pairs on every task, or leave it out of the order"
        )
    return verdict.p


def _outcome(found: Verdict) -> Outcome:
    """Read the scale off the numbers of a verdict."""
    claimed, same = found.hypothesis, found.equivalence
    if found.interval is None:
        return _escape_outcome(found) if found.unit == UPDATES else Outcome.INCONCLUSIVE
    sides = sorted(end * (claimed.sign or 1) for end in _ends(found.interval))
    low, high = sides[0], sides[1]
    equivalent = same is not None and same.shown and not found.closed_by
    if not claimed.sign:
        apart = low > claimed.margin or high < -claimed.margin
        if equivalent and (found.p is None or found.p <= LEVEL):
            return Outcome.EQUIVALENT
        return Outcome.CONTRADICTED if apart and not found.closed_by else Outcome.INCONCLUSIVE
    tested = found.p is None or found.p <= LEVEL
    if tested and high < 0:
        return Outcome.CONTRADICTED
    if tested and low > 0:
        if found.size_excluded:
            return Outcome.SMALLER
        return Outcome.SUPPORTED if low > claimed.mark else Outcome.INCONCLUSIVE
    return Outcome.EQUIVALENT if equivalent else Outcome.INCONCLUSIVE


def _escape_outcome(found: Verdict) -> Outcome:
    """Read the scale off a log-rank test, which has a side and a p but no interval."""
    if found.p is None or found.p > LEVEL or not found.effect:
        return Outcome.INCONCLUSIVE
    claimed = found.effect * found.hypothesis.sign > 0
    return Outcome.SUPPORTED if claimed else Outcome.CONTRADICTED


def _ends(interval: Interval) -> tuple[float, float]:
    return (interval.low, interval.high)
