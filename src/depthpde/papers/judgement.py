"""From paired numbers to a row of findings: how large, how sure, and what follows.

`effect` judges a difference of accuracy over the tasks of a grid: *confirmed* where the interval
lies on the claimed side of 0, the corrected p is at most 0.05 and the claimed size is not beyond
the interval; *partly* where it is smaller than claimed; *undecided* below six pairs on any task.

`judge` judges any other number. A claim is *confirmed* where the whole 95 % interval lies beyond
what was claimed, *partly* where it lies on the claimed side of zero (of a half, for shares) but not
beyond that, and *not confirmed* elsewhere. Where it is tested, p must agree, after correction for
all that is tested with it. It is *undecided* below three measurements, and where the runs are too
few for any p to be small, unless all of them speak against the claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from depthpde.pages.formatting import format_interval, signed
from depthpde.records.evidence import Evidence, lacking, over_all
from depthpde.records.findings import FindingVerdict, JudgedClaim
from depthpde.records.statistics.paired import (
    LEVEL,
    holm,
    mean,
    mean_interval,
    sign_flip_p,
    too_few,
)

LEAST = 3
"""Measurements below which nothing is decided."""


def judge(
    claim: str,
    words: str,
    values: Sequence[float],
    *,
    above: float = 0.0,
    partly: float = 0.0,
    test: bool = True,
) -> JudgedClaim:
    """Judge a claim by numbers that must be positive, and confirm it where they exceed a mark.

    Args:
        claim: What was claimed.
        words: What was found; ``{mean}`` stands for the mean of the values.
        values: One for each pair of runs, or each measurement.
        above: Beyond what the claim counts as confirmed; below 0 it is 0.
        partly: Beyond what it counts as partly confirmed; 0 for differences, more for shares, which
            are positive whatever happens.
        test: Whether the values are paired differences, so that a sign-flip test applies.

    Returns:
        The claim; its p is that of this claim alone, see `corrected`.
    """
    mark = max(0.0, above)
    finite = [each for each in values if math.isfinite(each)]
    center = mean(finite) if finite else math.nan
    said = words.format(mean=center)
    if len(finite) < LEAST:
        return JudgedClaim(
            claim=claim, finding=said, verdict=FindingVerdict.UNDECIDED, n=len(finite)
        )
    found = mean_interval(finite)
    verdict = FindingVerdict.NOT_CONFIRMED
    if found.low > mark:
        verdict = FindingVerdict.CONFIRMED
    elif found.low > partly:
        verdict = FindingVerdict.PARTLY
    elif found.high > mark and too_few(len(finite)):
        verdict = FindingVerdict.UNDECIDED
    made = JudgedClaim(
        claim=claim,
        finding=said,
        verdict=verdict,
        n=len(finite),
        interval=(found.low, found.high),
        p=sign_flip_p(finite) if test else None,
    )
    return _agreed(made, comparisons=1)


def corrected(claims: Iterable[JudgedClaim]) -> tuple[JudgedClaim, ...]:
    """Return claims whose p are corrected, by Holm's method, for how many of them were tested.

    What the corrected p no longer bears out is not confirmed.
    """
    told = tuple(claims)
    p = [each.p for each in told if each.p is not None]
    tested = iter(holm(p))
    return tuple(
        each if each.p is None else _agreed(replace(each, p=next(tested)), comparisons=len(p))
        for each in told
    )


def _agreed(claim: JudgedClaim, *, comparisons: int) -> JudgedClaim:
    """Take back a verdict that the interval gave and p does not bear out."""
    given = claim.verdict in (FindingVerdict.CONFIRMED, FindingVerdict.PARTLY)
    if not given or claim.p is None or claim.p <= LEVEL:
        return claim
    few = too_few(claim.n, comparisons=comparisons)
    return replace(claim, verdict=FindingVerdict.UNDECIDED if few else FindingVerdict.NOT_CONFIRMED)


def effect(
    evidence: Evidence,
    claim: str,
    variant: str,
    size: float,
    *,
    against: str | None = None,
    what: str | None = None,
) -> JudgedClaim:
    """Judge a claimed effect over the tasks, whose sign and size are those of `size`.

    Args:
        evidence: The finished runs.
        claim: What was claimed.
        variant: Of which.
        size: The claimed difference, in points; the least one to speak of where none was told.
        against: Compared with what; the baseline unless given.
        what: What was compared, in words.
    """
    what = what or f"{variant} against {against or 'nothing placed'}"
    found = over_all(evidence, against=against).get(variant)
    if found is None or found.interval is None:
        return undecided(claim, what, 0 if found is None else found.n)
    low, high = found.interval.low, found.interval.high
    words = (
        f"{what}: {signed(found.mean)} points over {found.tasks} task{'s' * (found.tasks > 1)} "
        f"{format_interval(found.interval)}"
    )
    sign = 1.0 if size > 0 else -1.0
    near, far = (low, high) if size > 0 else (high, low)
    few = lacking(evidence, variant, against) or found.warning
    if few is not None:
        verdict, words = FindingVerdict.UNDECIDED, f"{words}; {few}"
    elif sign * near <= 0 or found.p_holm > LEVEL:
        verdict = FindingVerdict.NOT_CONFIRMED
    else:
        verdict = FindingVerdict.CONFIRMED if sign * far >= sign * size else FindingVerdict.PARTLY
    return JudgedClaim(
        claim=claim,
        finding=words,
        verdict=verdict,
        n=found.n,
        interval=(low, high),
        p=found.p_holm,
    )


def undecided(claim: str, what: str, n: int) -> JudgedClaim:
    """Return a claim that has too few finished pairs to be judged."""
    words = f"{what}: no pair is finished" if not n else f"{what}: too few pairs for an interval"
    return JudgedClaim(claim=claim, finding=words, verdict=FindingVerdict.UNDECIDED, n=n)


def spread(values: Sequence[float | None]) -> str:
    """Return mean ± half the 95 % interval in words, as far as there are numbers."""
    finite = [each for each in values if each is not None and math.isfinite(each)]
    if not finite:
        return "–"
    if len(finite) < 2:
        return f"{finite[0]:.3g}"
    found = mean_interval(finite)
    return f"{mean(finite):.3g} ± {(found.high - found.low) / 2:.2g}"


def judge_order(
    claim: str, words: str, slopes: Sequence[float], *, wanted: float, within: float = 0.25
) -> JudgedClaim:
    """Judge a claimed order of convergence by measured slopes.

    Confirmed where the whole interval of the mean slope lies within the tolerance; partly where
    errors shrink at least with half the order.

    Args:
        claim: What was claimed.
        words: What was found; ``{mean}`` stands for the mean slope.
        slopes: One for each run.
        wanted: The claimed order.
        within: Tolerance.
    """
    finite = [each for each in slopes if math.isfinite(each)]
    center = mean(finite) if finite else math.nan
    said = words.format(mean=center)
    if len(finite) < LEAST:
        return JudgedClaim(
            claim=claim, finding=said, verdict=FindingVerdict.UNDECIDED, n=len(finite)
        )
    found = mean_interval(finite)
    verdict = FindingVerdict.NOT_CONFIRMED
    if wanted - within <= found.low and found.high <= wanted + within:
        verdict = FindingVerdict.CONFIRMED
    elif found.low >= wanted / 2:
        verdict = FindingVerdict.PARTLY
    elif found.high >= wanted - within and too_few(len(finite)):
        verdict = FindingVerdict.UNDECIDED
    interval = (found.low, found.high)
    return JudgedClaim(claim=claim, finding=said, verdict=verdict, n=len(finite), interval=interval)


def slope(sizes: Sequence[float], errors: Sequence[float]) -> float:
    """Fit the order of convergence: minus the slope of log error over log size.

    error ≈ c · size^(−order)

    Args:
        sizes: Numbers of steps, increasing.
        errors: One for each; the fit is by least squares.
    """
    if len(sizes) < 2 or any(not each > 0 or not math.isfinite(each) for each in errors):
        return math.nan
    x, y = [math.log(each) for each in sizes], [math.log(each) for each in errors]
    middle = sum(x) / len(x)
    weights = [each - middle for each in x]
    return -sum(w * b for w, b in zip(weights, y, strict=True)) / sum(w * w for w in weights)
