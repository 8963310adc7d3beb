"""What paper A claims, judged by the finished runs of a grid.

confirmed       the interval lies on the claimed side of 0, corrected p < 0.05, and the claimed
                size is not beyond the interval
partly          the same, but smaller than claimed; or only for some of several cases
not confirmed   anything else
undecided       too few pairs to tell, whatever they say
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from depthpde.experiments.findings import Claim, Findings, Verdict
from depthpde.report.anatomy import position_of, site_of
from depthpde.report.diagnostic import foretell
from depthpde.report.evidence import Evidence, over_all
from depthpde.report.spelling import plain, signed, spell_interval
from depthpde.report.statistics import mean
from depthpde.report.strata import Overall

LEVEL = 0.05
EMBEDDING, ATTENTION = "after embedding", "after attention"
LEARNED = "all seven, learned"


def judge_all(chapters: Sequence[Evidence], stored: Sequence[Findings]) -> tuple[Findings, ...]:
    """Judge every grid that has claims anew, beside what other experiments ended in.

    Args:
        chapters: The grids.
        stored: Findings that were read; those of a grid here give way to what its runs say now.
    """
    judged = [judge(each) for each in chapters if each.name in JUDGES]
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
        tables={"learned ratios": learned_places(evidence)} if LEARNED in evidence.variants else {},
        notes=tuple(notes),
    )


def effect(claim: str, what: str, found: Overall | None, size: float) -> Claim:
    """Judge a claimed effect over the tasks, whose sign and size are those of `size`.

    Args:
        claim: What was claimed.
        what: What was compared, in words.
        found: The comparison; None where no pair is finished.
        size: The claimed difference, in points; the least one to speak of where none was told.
    """
    if found is None or found.interval is None:
        return _undecided(claim, what, 0 if found is None else found.n)
    low, high = found.interval.low, found.interval.high
    words = (
        f"{what}: {signed(found.mean)} points over {found.tasks} tasks "
        f"{spell_interval(found.interval)}"
    )
    sign = 1.0 if size > 0 else -1.0
    near, far = (low, high) if size > 0 else (high, low)
    if found.warning is not None:
        verdict, words = Verdict.UNDECIDED, f"{words}; {found.warning}"
    elif sign * near <= 0 or found.p_holm >= LEVEL:
        verdict = Verdict.NOT_CONFIRMED
    else:
        verdict = Verdict.CONFIRMED if sign * far >= sign * size else Verdict.PARTLY
    return Claim(
        claim=claim,
        finding=words,
        verdict=verdict,
        n=found.n,
        interval=(low, high),
        p=found.p_holm,
    )


def _placement(evidence: Evidence) -> list[Claim]:
    found = over_all(evidence)
    claims = [
        effect(
            "Paper A: diffusion after the embedding raises the average by 4.07 points.",
            "after embedding against nothing placed",
            found.get(EMBEDDING),
            4.07,
        ),
        effect(
            "Paper A: diffusion after attention lowers the average by 2.5 points.",
            "after attention against nothing placed",
            found.get(ATTENTION),
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
            f"Sceptics: diffusion after the embedding is more than {words}.",
            f"after embedding against {control}",
            over_all(evidence, against=control).get(EMBEDDING),
            0.1,
        )
        for control, words in controls.items()
        if control in evidence.variants
    ]


def _best(evidence: Evidence) -> Claim:
    claim = "Paper A: after the embedding is the best of the seven positions."
    found = over_all(evidence)
    positions = [each for each in found if _is_one_position(evidence, each)]
    if EMBEDDING not in positions or len(positions) < 2:
        return _undecided(claim, "seven positions", 0)
    order = sorted(positions, key=lambda each: -found[each].mean)
    rival = next(each for each in order if each != EMBEDDING)
    lead = over_all(evidence, against=rival)[EMBEDDING]
    judged = effect(claim, f"against the best other position, {rival}", lead, 0.1)
    if judged.verdict is Verdict.NOT_CONFIRMED and order[0] == EMBEDDING:
        return Claim(
            claim=claim,
            finding=f"largest mean of the seven, but not apart from the next; {judged.finding}",
            verdict=Verdict.PARTLY,
            n=judged.n,
            interval=judged.interval,
            p=judged.p,
        )
    return judged


def _multiscale(evidence: Evidence) -> list[Claim]:
    singles = [each for each in ("slow", "medium", "fast") if each in evidence.variants]
    claims = [
        effect(
            f"Paper A: a mix of scales is better than {single} diffusion alone.",
            f"mixed against {single}",
            over_all(evidence, against=single).get("mixed"),
            0.1,
        )
        for single in singles
    ]
    if "mixed, gated" in evidence.variants:
        claims.append(
            effect(
                "Content that chooses the scale is better than fixed weights.",
                "mixed, gated against mixed",
                over_all(evidence, against="mixed").get("mixed, gated"),
                0.1,
            )
        )
    return claims


def _positional(evidence: Evidence) -> list[Claim]:
    bare = [each for each in evidence.variants if f"{each} + diffusion" in evidence.variants]
    return [
        effect(
            f"Paper A: diffusion adds to positional encodings; with {each} too.",
            f"diffusion against none, {each}",
            over_all(evidence, against=each).get(f"{each} + diffusion"),
            0.1,
        )
        for each in bare
    ]


def _commutation(evidence: Evidence) -> list[Claim]:
    claims = []
    for each in foretell(evidence):
        told = each.p < LEVEL and each.correlation < 0
        claims.append(
            Claim(
                claim=f"Paper A: where diffusion and attention conflict, it harms ({each.words}).",
                finding=(
                    f"rank correlation with the change of accuracy {signed(each.correlation, 2)} "
                    f"over {each.cells} cells of task and position"
                ),
                verdict=Verdict.CONFIRMED if told else Verdict.NOT_CONFIRMED,
                n=each.cells,
                p=each.p,
            )
        )
    return claims


JUDGES: dict[str, Callable[[Evidence], list[Claim]]] = {
    "placement": _placement,
    "multiscale": _multiscale,
    "positional": _positional,
    "commutation": _commutation,
}
"""Grid → who judges its claims."""


def learned_places(evidence: Evidence) -> list[dict[str, float | str]]:
    """Return what ratio each position learned where all were there at once, the largest first.

    Every ratio began at 0, so what it became is what the training asked for.
    """
    found: dict[str, list[float]] = {}
    for run in evidence.records(LEARNED):
        for name, values in (run.result or {}).get("ratios", {}).items():
            site = site_of(name)
            if site is not None:
                found.setdefault(plain(site.position), []).extend(values)
    order = sorted(found.items(), key=lambda row: -mean(row[1]))
    return [
        {"position": place, "mean ratio": mean(values), "largest": max(values)}
        for place, values in order
    ]


def _is_one_position(evidence: Evidence, variant: str) -> bool:
    run = next(iter(evidence.records(variant)), None)
    return run is not None and position_of(run.config) is not None


def _undecided(claim: str, what: str, n: int) -> Claim:
    words = f"{what}: no pair is finished" if not n else f"{what}: too few pairs for an interval"
    return Claim(claim=claim, finding=words, verdict=Verdict.UNDECIDED, n=n)
