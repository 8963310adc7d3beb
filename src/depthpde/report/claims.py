"""What paper A claims, judged by the finished runs of a grid.

confirmed       the interval lies on the claimed side of 0, corrected p ≤ 0.05, and the claimed
                size is not beyond the interval
partly          the same, but smaller than claimed; or only for some of several cases
not confirmed   anything else
undecided       fewer than six pairs on a task of the grid, or too few in all, whatever they say
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from depthpde.pages.formatting import format_interval, signed
from depthpde.records.diagnostic import foretell
from depthpde.records.evidence import Evidence, lacking, over_all
from depthpde.records.findings import Findings, FindingVerdict, JudgedClaim
from depthpde.records.run_model import position_of
from depthpde.records.statistics.paired import LEVEL, holm
from depthpde.report.extra_tables import extra_tables

EMBEDDING, ATTENTION = "after embedding", "after attention"


def judge_all(chapters: Sequence[Evidence], stored: Sequence[Findings]) -> tuple[Findings, ...]:
    """Judge every grid that has claims anew, beside what other experiments ended in.

    Args:
        chapters: The grids.
        stored: Findings that were read; those of a grid here give way to what its runs say now.
    """
    scales = {each.name: each.scale for each in stored}
    judged = [judge(each, scales.get(each.name)) for each in chapters if each.name in JUDGES]
    names = {each.name for each in judged}
    return (*judged, *(each for each in stored if each.name not in names))


def judge(evidence: Evidence, scale: str | None = None) -> Findings:
    """Judge the claims that a grid was made for; a grid of one's own has none.

    Args:
        evidence: The finished runs.
        scale: How large the experiment was; told by its tasks if not given.
    """
    if scale is None:
        scale = "mini" if any(task.endswith("-mini") for task in evidence.tasks) else "full"
    claims = JUDGES[evidence.name](evidence) if evidence.name in JUDGES else []
    notes = []
    if evidence.missing:
        asked = len(evidence.missing) + sum(map(len, evidence.runs.values()))
        notes.append(f"{len(evidence.missing)} of {asked} runs are missing")
    if scale != "full":
        notes.append("small models on small tasks: no number of Long Range Arena itself")
    return Findings(
        name=evidence.name,
        question=evidence.question,
        scale=scale,
        claims=tuple(claims),
        tables=extra_tables(evidence),
        notes=tuple(notes),
    )


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
        return _undecided(claim, what, 0 if found is None else found.n)
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


def _placement(evidence: Evidence) -> list[JudgedClaim]:
    claims = [
        effect(
            evidence,
            "Paper A: diffusion after the embedding raises the average by 4.07 points.",
            EMBEDDING,
            4.07,
        ),
        effect(
            evidence,
            "Paper A: diffusion after attention lowers the average by 2.5 points.",
            ATTENTION,
            -2.5,
        ),
        _best(evidence),
    ]
    controls = {
        "conv from blur": "a free convolution that starts at the same stencil",
        "conv from identity": "a free convolution that starts as the identity",
        "fixed blur": "the same blur with nothing learned",
        "rotary": "rotary positions with nothing placed",
    }
    return claims + [
        effect(
            evidence,
            f"Sceptics: diffusion after the embedding is more than {words}.",
            EMBEDDING,
            0.1,
            against=control,
        )
        for control, words in controls.items()
        if control in evidence.variants
    ]


def _best(evidence: Evidence) -> JudgedClaim:
    claim = "Paper A: after the embedding is the best of the seven positions."
    found = over_all(evidence)
    positions = [each for each in found if _is_one_position(evidence, each)]
    if EMBEDDING not in positions or len(positions) < 2:
        return _undecided(claim, "seven positions", 0)
    order = sorted(positions, key=lambda each: -found[each].mean)
    rival = next(each for each in order if each != EMBEDDING)
    what = f"against the best other position, {rival}"
    judged = effect(evidence, claim, EMBEDDING, 0.1, against=rival, what=what)
    if judged.verdict is FindingVerdict.NOT_CONFIRMED and order[0] == EMBEDDING:
        words = f"the largest mean of the seven, but not apart from the next; {judged.finding}"
        return replace(judged, finding=words)
    return judged


def _multiscale(evidence: Evidence) -> list[JudgedClaim]:
    singles = [each for each in ("slow", "medium", "fast") if each in evidence.variants]
    claims = [
        effect(
            evidence,
            f"Paper A: a mix of scales is better than {single} diffusion alone.",
            "mixed",
            0.1,
            against=single,
        )
        for single in singles
    ]
    if "mixed, gated" in evidence.variants:
        claims.append(
            effect(
                evidence,
                "Content that chooses the scale is better than fixed weights.",
                "mixed, gated",
                0.1,
                against="mixed",
            )
        )
    if "fast, fixed" in evidence.variants:
        claims.append(
            effect(
                evidence,
                "Sceptics: fast diffusion is more than the same blur with nothing learned.",
                "fast",
                0.1,
                against="fast, fixed",
            )
        )
    return claims


def _positional(evidence: Evidence) -> list[JudgedClaim]:
    bare = [each for each in evidence.variants if f"{each} + diffusion" in evidence.variants]
    return [
        effect(
            evidence,
            f"Paper A: diffusion adds to positional encodings; with {each} too.",
            f"{each} + diffusion",
            0.1,
            against=each,
            what=f"diffusion against none, {each}",
        )
        for each in bare
    ]


def _multiscale_positions(evidence: Evidence) -> list[JudgedClaim]:
    claims = []
    for mixed in (each for each in evidence.variants if each.endswith(", mixed")):
        place = mixed.removesuffix(", mixed")
        found = over_all(evidence)
        singles = [f"{place}, {each}" for each in ("slow", "medium", "fast")]
        known = [each for each in singles if each in found]
        if not known:
            continue
        rival = max(known, key=lambda each: found[each].mean)
        claims.append(
            effect(
                evidence,
                f"Paper A: a mix of scales is the best choice {place}.",
                mixed,
                0.1,
                against=rival,
                what=f"{place}, mixed against the best single scale there, {rival}",
            )
        )
    return claims


def _ways(evidence: Evidence) -> list[JudgedClaim]:
    """Judge every other way against the one that everything else here uses."""
    claims = []
    for place, usual, others in (
        ("after embedding", "explicit", ("backward Euler", "exact", "one ratio", "adaptive")),
        ("between blocks", "explicit", ("backward Euler", "exact", "one ratio", "adaptive")),
        ("after attention", "branch", ("stream",)),
        ("after ffn", "branch", ("stream",)),
    ):
        claims += [
            effect(
                evidence,
                f"Another way is better: {place}, {other} instead of {usual}.",
                f"{place}, {other}",
                0.1,
                against=f"{place}, {usual}",
            )
            for other in others
            if {f"{place}, {other}", f"{place}, {usual}"} <= set(evidence.variants)
        ]
    return claims


def _commutation(evidence: Evidence) -> list[JudgedClaim]:
    claims = []
    known = foretell(evidence)
    corrected = holm([each.p for each in known])
    few = [why for each in evidence.others if (why := lacking(evidence, each)) is not None]
    for each, p in zip(known, corrected, strict=True):
        words = (
            f"rank correlation with the change of accuracy {signed(each.correlation, 2)} "
            f"over {each.cells} cells of task and position"
        )
        if few or len(known) * each.least_p > LEVEL:
            verdict = FindingVerdict.UNDECIDED
            words = f"{words}; {few[0] if few else 'so few cells cannot tell'}"
        elif p <= LEVEL and each.correlation < 0:
            verdict = FindingVerdict.CONFIRMED
        else:
            verdict = FindingVerdict.NOT_CONFIRMED
        claims.append(
            JudgedClaim(claim=f"{each.claim}.", finding=words, verdict=verdict, n=each.cells, p=p)
        )
    return claims


JUDGES: dict[str, Callable[[Evidence], list[JudgedClaim]]] = {
    "placement": _placement,
    "multiscale": _multiscale,
    "multiscale-positions": _multiscale_positions,
    "ways": _ways,
    "positional": _positional,
    "commutation": _commutation,
}
"""Grid → who judges its claims."""


def _is_one_position(evidence: Evidence, variant: str) -> bool:
    run = next(iter(evidence.records(variant)), None)
    return run is not None and position_of(run.config) is not None


def _undecided(claim: str, what: str, n: int) -> JudgedClaim:
    words = f"{what}: no pair is finished" if not n else f"{what}: too few pairs for an interval"
    return JudgedClaim(claim=claim, finding=words, verdict=FindingVerdict.UNDECIDED, n=n)
