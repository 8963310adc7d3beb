"""From paired numbers to a row of findings, by the one rule of `records.verdicts`.

    effect_claim     a contrast of variants over the tasks of a grid; test loss beside it
    number_claim     any other paired number, task by task
    measured_claim   measurements of one system: an interval, no test
    order_claim      a measured order of convergence
    in_order         claims of one experiment, each a gate to the next
    by_holm          questions of one's own, corrected for their number

Tasks that are learned at once or not yet stand in no mean; `escape_claim` judges them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from depthpde.pages.formatting import counted, signed
from depthpde.records.contrasts import Weights, contrast, differences_of
from depthpde.records.escapes import LEARNED_AT_ONCE, run_escape
from depthpde.records.evidence import Evidence, broke, lacking
from depthpde.records.findings import JudgedClaim
from depthpde.records.record import State
from depthpde.records.scores import Endpoint, Scores, scores_of
from depthpde.records.statistics.combination import combined_interval, combined_mean
from depthpde.records.statistics.paired import holm, mean, mean_interval
from depthpde.records.verdicts import (
    Hypothesis,
    Outcome,
    Verdict,
    judge,
    judge_escape,
    judged_in_order,
    with_p,
)

Values = Mapping[str, Sequence[float]]
"""Task → one number for each pair, or each run."""
MARGIN = 0.75
"""Points within which two variants count as the same. Named after these runs existed, before the
next: a reader may read the intervals by a margin of his own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A claim and the verdict it has by itself."""

    claim: str
    words: str
    verdict: Verdict

    def row(self) -> JudgedClaim:
        """Return the row of findings."""
        found = self.verdict
        p = None if found.closed_by else found.p  # behind a closed gate nothing was tested
        of = "" if found.hypothesis.sign or p is None else "p is that of equivalence"
        remarks = [self.words, *found.remarks(), of]
        return JudgedClaim(
            claim=self.claim,
            finding="; ".join(each for each in remarks if each),
            verdict=found.outcome,
            n=found.n,
            effect=found.effect,
            unit="" if found.effect is None else found.unit,
            interval=None if found.interval is None else (found.interval.low, found.interval.high),
            p=p,
            least=found.least,
            closed_by=found.closed_by,
        )


def effect_claim(
    evidence: Evidence,
    claim: str,
    weights: Weights,
    hypothesis: Hypothesis,
    *,
    what: str,
    scores: Scores | None = None,
    unit: str = "points",
) -> Judged | JudgedClaim:
    """Judge a contrast of test accuracies over the tasks that stand in a mean.

    Args:
        evidence: The finished runs.
        claim: What was claimed.
        weights: Variant → weight; `difference` of two variants for most claims.
        hypothesis: Side, size and margin of the claim, in the unit.
        what: What was compared, in words.
        scores: Other numbers than test accuracies, such as those under noise.
        unit: Of the scores.

    Returns:
        The claim with its verdict; the row itself where the pairs decide nothing.
    """
    clean = scores is None
    scores = scores_of(evidence) if scores is None else scores
    used = [variant for variant, weight in weights.items() if weight]
    missing = [each for each in used if each not in scores]
    found = {} if missing else contrast(scores, weights)
    values = differences_of(found, without=LEARNED_AT_ONCE)
    if not values:
        return undecided(claim, f"{what}: no pair is finished", 0)
    words = f"{what}, {counted(len(values), 'task')}"
    few = [why for each in used[:-1] if (why := lacking(evidence, each, used[-1], scores))]
    if few:
        n = sum(map(len, values.values()))
        return undecided(claim, f"{words}: {signed(combined_mean(values), 2)} {unit}; {few[0]}", n)
    whole = differences_of(found)
    if len(whole) > len(values):
        words += f" ({signed(combined_mean(whole), 2)} with Pathfinder, which counts escapes)"
    loss = _loss(evidence, weights) if clean else ""
    words += f"; test loss {loss}" if loss else ""
    words += _broken(evidence, used)
    if lost := [task for task in values if _all_broke(evidence, task, used)]:
        where = "" if len(lost) == len(values) else f" on {', '.join(lost)}"
        words += f"; what is compared{where} was laid down, not measured"
        return undecided(claim, words, sum(map(len, values.values())))
    return Judged(claim=claim, words=words, verdict=judge(values, hypothesis, unit=unit))


def _all_broke(evidence: Evidence, task: str, variants: Sequence[str]) -> bool:
    """Tell whether no run of a task was measured on any side: their differences are 0 by fiat."""
    cells = (evidence.runs.get((task, each), {}) for each in variants)
    return all(broke(run) for runs in cells for run in runs.values())


def _broken(evidence: Evidence, variants: Sequence[str]) -> str:
    """Tell how many runs broke: what they count as was laid down, not measured."""
    counts: dict[str, list[str]] = {"diverged": [], "without a test result": []}
    for variant in variants:
        runs = evidence.records(variant)
        diverged = sum(run.state is State.DIVERGED for run in runs)
        others = sum(map(broke, runs)) - diverged
        for why, count in zip(counts, (diverged, others), strict=True):
            counts[why] += [f"{variant} {count} of {len(runs)}"] * bool(count)
    return "".join(f"; {why}: {', '.join(each)}" for why, each in counts.items() if each)


def _loss(evidence: Evidence, weights: Weights) -> str:
    """Tell the second endpoint: the same contrast of test losses, in nats."""
    scores = scores_of(evidence, Endpoint.LOSS)
    if any(variant not in scores for variant, weight in weights.items() if weight):
        return ""
    values = differences_of(contrast(scores, weights), without=LEARNED_AT_ONCE)
    interval = combined_interval(values) if values else None
    if interval is None:
        return ""
    ends = f"{signed(interval.low, 3)}, {signed(interval.high, 3)}"
    return f"{signed(combined_mean(values), 3)} nats [{ends}]"


def escape_claim(
    evidence: Evidence, claim: str, variant: str, *, sooner: bool
) -> list[JudgedClaim]:
    """Judge whether a variant leaves a plateau sooner or later, task by task, by the log-rank test.

    Args:
        evidence: The finished runs.
        claim: What was claimed.
        variant: Of which.
        sooner: Whether it was claimed to escape sooner.
    """
    rows = []
    for task in (each for each in evidence.tasks if each in LEARNED_AT_ONCE):
        found = escape_judged(evidence, claim, variant, evidence.baseline, task, sooner=sooner)
        rows += [] if found is None else [found.row()]
    return rows


def escape_judged(
    evidence: Evidence, claim: str, variant: str, against: str, task: str, *, sooner: bool = True
) -> Judged | None:
    """Judge when two variants leave the plateau of one task; None without a pair.

    Args:
        evidence: The finished runs.
        claim: What was claimed.
        variant: Of which.
        against: Compared with which.
        task: One of those that are learned at once or not yet.
        sooner: Whether it was claimed to escape sooner.
    """
    line = LEARNED_AT_ONCE[task]
    ours, theirs = (
        {
            seed: time
            for seed, run in evidence.runs.get((task, each), {}).items()
            if (time := run_escape(run, line)) is not None
        }
        for each in (variant, against)
    )
    if not set(ours) & set(theirs):
        return None
    left = [f"{sum(t.escaped for t in each.values())} of {len(each)}" for each in (ours, theirs)]
    whose = "the baseline's" if against == evidence.baseline else f"{against}'s"
    words = (
        f"{task}, updates until the plateau is left: {left[0]} runs left it, {left[1]} of {whose}"
    )
    verdict = judge_escape(ours, theirs, sooner=sooner)
    return Judged(claim=claim, words=words, verdict=verdict)


def number_claim(
    claim: str,
    words: str,
    values: Values,
    *,
    mark: float = 0.0,
    margin: float = 0.1,
) -> Judged | JudgedClaim:
    """Judge a claim that a paired number is positive, beyond a mark, tasks as strata.

    Args:
        claim: What was claimed.
        words: What was found; ``{mean}`` stands for the mean over tasks.
        values: Task → one number for each pair.
        mark: Beyond what the claim is supported; below 0 it is 0.
        margin: Within which the number counts as none.
    """
    finite = _finite(values)
    if not finite:
        return undecided(claim, words.format(mean=math.nan), 0)
    finding = words.format(mean=combined_mean(finite))
    hypothesis = Hypothesis(sign=1, mark=max(0.0, mark), margin=margin)
    return Judged(claim=claim, words=finding, verdict=judge(finite, hypothesis, unit=""))


def measured_claim(
    claim: str, words: str, values: Values, *, mark: float, zero: float = 0.0
) -> JudgedClaim:
    """Judge a claim that measurements of one system lie beyond a mark, by their interval.

    Supported beyond the mark; smaller than claimed between ``zero`` and the mark; contradicted
    below ``zero``.

    Args:
        claim: What was claimed.
        words: What was found; ``{mean}`` stands for the mean over tasks.
        values: Task → one number for each run.
        mark: Beyond what the claim is supported.
        zero: What counts as nothing: 0, or a half for shares.
    """
    moved = {task: [each - zero for each in runs] for task, runs in _finite(values).items()}
    if not moved:
        return undecided(claim, words.format(mean=math.nan), 0)
    found = judge(moved, Hypothesis(mark=mark - zero, margin=1e-3), test=False, unit="")
    center = found.effect + zero
    ends = found.interval
    return JudgedClaim(
        claim=claim,
        finding=words.format(mean=center),
        verdict=found.outcome,
        n=found.n,
        effect=center,
        interval=None if ends is None else (ends.low + zero, ends.high + zero),
        least=found.least,
    )


def order_claim(
    claim: str, words: str, slopes: Values, *, wanted: float, within: float = 0.25
) -> JudgedClaim:
    """Judge a claimed order of convergence by measured slopes.

    Supported where two one-sided tests place the mean slope within the tolerance; contradicted
    where its interval lies apart from it; smaller than claimed where errors shrink, but slower.

    Args:
        claim: What was claimed.
        words: What was found; ``{mean}`` stands for the mean slope.
        slopes: Task → one for each run.
        wanted: The claimed order.
        within: Tolerance.
    """
    off = {task: [each - wanted for each in runs] for task, runs in _finite(slopes).items()}
    if not off:
        return undecided(claim, words.format(mean=math.nan), 0)
    found = judge(off, Hypothesis(sign=0, margin=within), unit="")
    ends, outcome = found.interval, found.outcome
    if outcome is Outcome.EQUIVALENT:
        outcome = Outcome.SUPPORTED
    elif outcome is Outcome.CONTRADICTED and ends is not None and 0 < ends.low + wanted < wanted:
        outcome = Outcome.SMALLER
    return JudgedClaim(
        claim=claim,
        finding=words.format(mean=found.effect + wanted),
        verdict=outcome,
        n=found.n,
        effect=found.effect + wanted,
        interval=None if ends is None else (ends.low + wanted, ends.high + wanted),
        p=found.p,
        least=found.least,
    )


def in_order(claims: Sequence[Judged | JudgedClaim]) -> list[JudgedClaim]:
    """Return rows whose verdicts are reached in the order given, each a gate to the next.

    A claim without pairs enough for a test is no gate: it stands as it is.

    Args:
        claims: In the order in which the experiment names them.
    """
    tested = {
        str(place): each.verdict
        for place, each in enumerate(claims)
        if isinstance(each, Judged) and each.verdict.p is not None
    }
    gated = judged_in_order(tested)  # by place: two claims may have the same words
    rows = []
    for place, each in enumerate(claims):
        if isinstance(each, JudgedClaim):
            rows.append(each)
            continue
        verdict = gated.get(str(place), each.verdict)
        if verdict.closed_by:
            verdict = replace(verdict, closed_by=short_claim(claims[int(verdict.closed_by)].claim))
        rows.append(replace(each, verdict=verdict).row())
    return rows


def by_holm(claims: Sequence[Judged | JudgedClaim]) -> list[JudgedClaim]:
    """Return rows corrected for their number: for questions of one's own, that nobody put in order.

    Of m claims the best must reach p ≤ 0.05 / m; that is what asking them all costs.

    Args:
        claims: In any order.
    """
    tested = {
        place: each.verdict.p
        for place, each in enumerate(claims)
        if isinstance(each, Judged) and each.verdict.p is not None
    }
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    rows = []
    for place, each in enumerate(claims):
        if isinstance(each, JudgedClaim):
            rows.append(each)
            continue
        p = corrected.get(place)
        verdict = each.verdict if p is None else with_p(each.verdict, p)
        rows.append(replace(each, verdict=verdict).row())
    return rows


def short_claim(claim: str) -> str:
    """Return a claim without who made it.

    Args:
        claim: As it stands in a row, such as ``Paper A: it helps.``
    """
    return claim.split(": ")[-1].rstrip(".")


def undecided(claim: str, words: str, n: int) -> JudgedClaim:
    """Return a claim that has too few finished pairs to be judged."""
    return JudgedClaim(claim=claim, finding=words, verdict=Outcome.INCONCLUSIVE, n=n)


def spread(values: Sequence[float | None]) -> str:
    """Return mean ± half the 95 % interval in words, as far as there are numbers."""
    finite = [each for each in values if each is not None and math.isfinite(each)]
    if not finite:
        return "–"
    if len(finite) < 2:
        return f"{finite[0]:.3g}"
    found = mean_interval(finite)
    return f"{mean(finite):.3g} ± {(found.high - found.low) / 2:.2g}"


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


def _finite(values: Values) -> dict[str, list[float]]:
    found = {task: [float(v) for v in each if math.isfinite(v)] for task, each in values.items()}
    return {task: each for task, each in found.items() if each}
