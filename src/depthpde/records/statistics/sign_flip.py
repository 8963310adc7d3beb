"""The sign-flip test, exact to 40 pairs, and the interval that it does not reject.

If a variant does nothing, its two runs of a pair could as well be exchanged: every difference dᵢ
has either sign with the same chance. Nothing else is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from depthpde.errors import check_one_of, check_range
from depthpde.records.statistics.interval import Interval, IntervalMethod
from depthpde.records.statistics.samples import Numbers, check_sample
from depthpde.seeds import derive

EXACT_UP_TO = 40
"""Most pairs whose 2ⁿ sums are all counted: two halves of 2²⁰ sums take 16 MB and half a second."""
ENUMERATED_UP_TO = 20
"""Most pairs whose 2ⁿ subset means are all listed for an interval: 8 MB."""
DRAWS = (64, 1024)
"""Random sign patterns beyond 40 pairs: rounds and patterns a round."""
KEPT_UP_TO = 500
"""Most pairs whose random patterns are kept for the next test: 4 MB."""
TOGETHER = 4
"""Rounds that are looked up at once: their sums stay in the cache of a core."""
TIE = 1e-12
"""Sums of the same numbers in another order differ by this share at most: such are ties."""


class Alternative(StrEnum):
    """Which departures from 0 a test looks for."""

    BOTH = "both"
    ABOVE = "above"
    """Only a mean above 0 counts as evidence."""
    BELOW = "below"
    """Only a mean below 0 does."""


def sign_flip_test(
    differences: ArrayLike, *, side: Alternative | str = Alternative.BOTH, seed: int = 0
) -> float:
    """Return the p of paired differences under flips of their signs.

        p = share of the 2ⁿ patterns σ with |Σ σᵢ dᵢ| ≥ |Σ dᵢ|        (one side: Σ σᵢ dᵢ ≥ Σ dᵢ)

    Exact up to 40 pairs for any distribution: every pattern is a sum of one half's pattern and
    the other's, so sorting the 2^(n/2) sums of a half and searching in them counts all 2ⁿ.
    Never below 2^(1 − n), on one side 2^(−n). Beyond 40 pairs: 65,536 random patterns, the observed
    one counted in, which keeps the test valid.

        sign_flip_test([0.4, 1.1, 0.9, 0.3, 0.7, 1.5])   # 0.03125: 2 of 64, all six agree

    Args:
        differences: One for each pair; weighted as the mean weighs them.
        side: BOTH for a question without a direction; one side inside `equivalence`.
        seed: Seed of the random patterns beyond 40 pairs.
    """
    return sign_flip_tests([differences], [side], seed=seed)[0]


def sign_flip_tests(
    samples: Sequence[ArrayLike], sides: Sequence[Alternative | str] = (), *, seed: int = 0
) -> list[float]:
    """Return `sign_flip_test` of each of several samples, to the last digit, in less time.

    Beyond 40 pairs samples of one length meet the same random patterns, which are drawn once.

    Args:
        samples: The differences of each.
        sides: Which departures count, for each; BOTH for all if not given.
        seed: Seed of the random patterns beyond 40 pairs.
    """
    found, drawn = [1.0] * len(samples), dict[int, list[int]]()
    rows, bars = list[Numbers](), list[float]()
    asked = [check_one_of("side", each, Alternative) for each in sides]
    asked = asked or [Alternative.BOTH] * len(samples)
    for number, (sample, side) in enumerate(zip(samples, asked, strict=True)):
        d = check_sample("differences", sample)
        d = -d if side is Alternative.BELOW else d
        total, slack = float(d.sum()), TIE * float(np.abs(d).sum())
        total = abs(total) if side is Alternative.BOTH else total
        rows.append(d)
        bars.append(total - slack)
        if side is Alternative.BOTH and total <= slack:
            continue
        if len(d) <= EXACT_UP_TO:
            found[number] = _reached(d, bars[number])
        else:
            drawn.setdefault(len(d), []).append(number)
    for numbers in drawn.values():
        together = np.stack([rows[n] for n in numbers], axis=1)
        shares = _drawn(together, np.array([bars[n] for n in numbers]), seed)
        for number, share in zip(numbers, shares, strict=True):
            found[number] = share
    twice = (2 if side is Alternative.BOTH else 1 for side in asked)
    return [min(1.0, each * times) for each, times in zip(found, twice, strict=True)]


def sign_flip_interval(differences: ArrayLike, *, level: float = 0.95) -> Interval | None:
    """Return the means that the sign-flip test does not reject; None where n is too small.

        [m₍ₖ₎, m₍₂ⁿ₋ₖ₎],    m the sorted means of all 2ⁿ − 1 subsets,    k = ⌊2ⁿ (1 − level) / 2⌋

    The truth has the same chance of lying in each gap between the means of the subsets (Hartigan's
    typical values), so coverage is exactly 1 − k / 2ⁿ⁻¹ for symmetric differences, whatever their
    shape: 96.9 % at six pairs, 95.3 % at eight. Below six pairs k = 0 for 95 %: no interval.

    Args:
        differences: 2 to 20 of one task.
        level: Least coverage.
    """
    d = check_sample("differences", differences, at_least=2)
    check_range("level", level, 0.5, 0.9999)
    if len(d) > ENUMERATED_UP_TO:
        raise ValueError(
            f"`differences` must hold at most {ENUMERATED_UP_TO} numbers, got {len(d)}; use "
            "`mean_interval`, whose Student's t is right by then"
        )
    skipped = int(2 ** len(d) * (1 - level) / 2 + 1e-9)
    if not skipped:
        return None
    means = np.sort(_subset_means(d))
    note = "" if np.ptp(d) else "all numbers are equal: the width says nothing about new runs"
    return Interval(
        low=float(means[skipped - 1]),
        high=float(means[-skipped]),
        level=level,
        method=IntervalMethod.SIGN_FLIP,
        note=note,
    )


def _reached(d: Numbers, bar: float) -> float:
    """Return the exact share of the patterns whose sum is at least `bar`."""
    half = len(d) // 2
    left, right = (np.sort(_signed_sums(each)) for each in (d[:half], d[half:]))
    below = np.searchsorted(right, bar - left, side="left")
    return float((len(right) - below).sum() / (len(left) * len(right)))


def _drawn(d: Numbers, bars: Numbers, seed: int) -> list[float]:
    """Return the share of random patterns that reach each bar, the observed one counted in.

    Eight signs are a byte, and of eight differences there are 256 sums: a pattern's sum is one
    number looked up for each of its bytes, an eighth of the additions.

    Args:
        d: [pairs, samples].
        bars: [samples].
        seed: Seed of the patterns.
    """
    sums = _byte_sums(d)
    patterns = _kept_patterns if len(d) <= KEPT_UP_TO else _patterns
    reached = np.zeros(len(bars), dtype=np.int64)
    for packed in patterns(seed, len(d)):
        totals = sums[0][packed[0]]
        for each, byte in zip(sums[1:], packed[1:], strict=True):
            totals += each[byte]
        reached += np.count_nonzero(totals >= bars, axis=0)
    drawn = math.prod(DRAWS)
    return [(1 + int(each)) / (1 + drawn) for each in reached]


def _byte_sums(d: Numbers) -> Numbers:
    """Return the signed sums of every eight differences, [bytes, 256, samples]."""
    pairs, samples = d.shape
    whole = np.zeros((-(-pairs // 8) * 8, samples))  # what fills the last byte adds nothing
    whole[:pairs] = d
    signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * 2.0 - 1.0
    found: Numbers = (signs @ whole.reshape(-1, 8, samples)).astype(np.float64, copy=False)
    return found


def _patterns(seed: int, pairs: int) -> Iterator[NDArray[np.uint8]]:
    """Yield random signs a few rounds at a time, [bytes, patterns], eight pairs to a byte.

    The highest bit of a random byte is what ``integers(0, 2, dtype="i1")`` makes of it, in a
    fourth of the time.
    """
    random = np.random.default_rng(derive(seed, "sign-flip"))
    rounds, size = DRAWS
    for _ in range(0, rounds, TOGETHER):
        drawn = b"".join(random.bytes(size * pairs) for _ in range(TOGETHER))
        signs = np.frombuffer(drawn, np.uint8).reshape(-1, pairs) & 128
        yield np.ascontiguousarray(np.packbits(signs, axis=1).T)


@lru_cache(maxsize=48)
def _kept_patterns(seed: int, pairs: int) -> tuple[NDArray[np.uint8], ...]:
    """Keep them: all variants of a grid have about as many pairs, and drawing takes the longest."""
    return tuple(_patterns(seed, pairs))


def _signed_sums(d: Numbers) -> Numbers:
    sums = np.zeros(1)
    for each in d:
        sums = np.concatenate((sums + each, sums - each))
    return sums


def _subset_means(d: Numbers) -> Numbers:
    """Return the mean of every non-empty subset."""
    sums, sizes = np.zeros(1), np.zeros(1)
    for each in d:
        sums, sizes = np.concatenate((sums, sums + each)), np.concatenate((sizes, sizes + 1))
    means: Numbers = sums[1:] / sizes[1:]
    return means
