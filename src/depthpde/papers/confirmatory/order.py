"""The tests of a protocol in their order: the first that does not show its claim ends them.

    shown_k    iff   test k shows what it claims, and so does every test before it

`in_order` of the papers' claims asks for a small p alone. A claim that is contradicted, or lies
below its own mark, has one too; here it ends the order, so that a mark beyond 0 is a gate like any
other: the chance that any claim is falsely shown is at most the level, whatever the marks are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from depthpde.papers.claims import Judged, short_claim
from depthpde.records.findings import JudgedClaim
from depthpde.records.verdicts import Hypothesis, Outcome, with_p


def until_not_shown(claims: Sequence[Judged | JudgedClaim]) -> list[JudgedClaim]:
    """Return rows of tests that end at the first that does not show what it claims.

    A claim without pairs enough for a test ends the order too.

    Args:
        claims: In the order that was named before the runs.
    """
    rows: list[JudgedClaim] = []
    worst, closed_by = 0.0, ""
    for each in claims:
        shown = False
        if isinstance(each, JudgedClaim):
            rows.append(each)
        else:
            verdict = replace(each.verdict, closed_by=closed_by)
            if verdict.p is not None:
                worst = max(worst, 1.0 if closed_by else verdict.p)
                verdict = with_p(verdict, worst)
            rows.append(replace(each, verdict=verdict).row())
            shown = verdict.outcome is _wanted(verdict.hypothesis)
        if not (shown or closed_by):  # a gate is closed by its test, whatever its claim is called
            closed_by = short_claim(each.claim) or each.claim
    return rows


def _wanted(hypothesis: Hypothesis) -> Outcome:
    """Return the verdict of a claim that is shown as it was made."""
    return Outcome.SUPPORTED if hypothesis.sign else Outcome.EQUIVALENT
