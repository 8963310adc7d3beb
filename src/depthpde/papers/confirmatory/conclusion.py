"""by_protocol(protocol) → what judges an experiment: its own contrasts, in order, at a look.

Only records that carry the protocol's digest and one of its test seeds decide; whatever else a
grid holds is exploratory, and the findings say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from depthpde.papers.ablation.signs import sign_scores
from depthpde.papers.claims import (
    MARGIN,
    Judged,
    effect_claim,
    escape_judged,
    undecided,
)
from depthpde.papers.confirmatory.order import until_not_shown
from depthpde.papers.confirmatory.readings import corrupted_scores, reading_scores, reading_tables
from depthpde.papers.experiment import Case, Conclude, Conclusion, Experiment, Tables
from depthpde.papers.extra_tables import extra_tables
from depthpde.records.contrasts import difference, interaction
from depthpde.records.escapes import LEARNED_AT_ONCE
from depthpde.records.evidence import Evidence
from depthpde.records.findings import JudgedClaim
from depthpde.records.protocols.endpoints import (
    CORRUPTED,
    COSINE_TO_INPUT,
    ESCAPE,
    LARGEST_GRADIENT,
    READINGS,
    SIGNS,
)
from depthpde.records.protocols.protocol import (
    Claimed,
    EvidenceKind,
    Look,
    PlannedContrast,
    StudyProtocol,
)
from depthpde.records.protocols.steps import TUNING, GateResult, stage_grid
from depthpde.records.verdicts import LEVEL, Hypothesis, Outcome, with_p

SIGN_MARGIN = 0.1
"""Decades, or of a cosine, within which a sign is the same: as in the ablation before."""
UNITS = {LARGEST_GRADIENT: "decades", COSINE_TO_INPUT: ""}
"""What else than points an endpoint is counted in."""


def by_protocol(
    protocol: StudyProtocol,
    *,
    tables: Tables = lambda evidence: {},
    tuning_tables: Tables | None = None,
) -> Conclude:
    """Make the conclusion of an experiment that runs under a protocol.

    Args:
        protocol: Its own.
        tables: The runs that a look sees → tables of its own beside the tests; they decide nothing.
        tuning_tables: The runs that chose rates → the same, for what is said of them; a note stands
            in their place where those runs are not given.
    """

    def conclude(case: Case) -> Conclusion:
        evidence = case.evidence
        assert evidence is not None, "an experiment that reads records is given evidence"
        kept, notes = confirmatory(protocol, evidence)
        notes += [
            f"{task} is left out: its baseline did not pass its gate"
            for task in left_out_tasks(protocol, evidence.tasks)
        ]
        finished = finished_seeds(protocol, kept)
        look = protocol.look(finished)
        notes.insert(0, f"protocol {protocol.digest}; {_words(look, finished, protocol)}")
        if look is None:
            waits = f"{finished} of {protocol.looks[0].seeds} seeds: the first look has not come"
            n = finished * len(kept.tasks)
            early = (undecided(claim_of(each), waits, n) for each in protocol.contrasts)
            claims = [replace(each, verdict=Outcome.WAITING) for each in early]
            return Conclusion(claims=claims, notes=notes)
        seen = at_seeds(kept, protocol.seeds_of(look))
        notes += rates_at_an_end(protocol, seen)
        judged = [_at_look(_judge(seen, each), look) for each in protocol.contrasts]
        own = {title: rows for title, rows in tables(seen).items() if rows}
        beside = own | reading_tables(seen) | extra_tables(seen)
        if tuning_tables is not None and case.tuning is not None:
            beside |= tuning_tables(case.tuning)
        elif tuning_tables is not None:
            grid = stage_grid(protocol.name, TUNING)
            notes.append(
                f"the table of the runs that chose rates is left out: no run of {grid} is here"
            )
        return Conclusion(claims=until_not_shown(judged), tables=beside, notes=notes)

    return conclude


def own_experiment(protocol: StudyProtocol) -> Experiment:
    """Return the experiment that somebody's own protocol is: its contrasts are its claims.

    Args:
        protocol: Of a grid file, or as a results folder holds it.
    """
    return Experiment(
        name=protocol.name,
        question=protocol.question,
        protocol=protocol,
        conclude=by_protocol(protocol),
    )


def stopped(protocol: StudyProtocol, failed: Sequence[GateResult]) -> Conclusion:
    """Return the conclusion of an experiment that a gate stopped: nothing was tested.

    Args:
        protocol: Its own.
        failed: Gates that did not open.
    """
    why = f"not tested: the gate of {', '.join(each.gate.task for each in failed)} failed"
    claims = [undecided(claim_of(each), why, 0) for each in protocol.contrasts]
    return Conclusion(claims=claims, notes=[f"protocol {protocol.digest}", *map(str, failed)])


def confirmatory(protocol: StudyProtocol, evidence: Evidence) -> tuple[Evidence, list[str]]:
    """Return the runs that may decide, and a note for each reason why others may not.

    Args:
        protocol: The experiment's.
        evidence: Whatever its grid holds.
    """
    reasons: Counter[str] = Counter()
    runs = {}
    for cell, found in evidence.runs.items():
        kinds = {seed: protocol.evidence(record.config) for seed, record in found.items()}
        reasons.update(
            f"{kind}, {why}"
            for kind, why in kinds.values()
            if kind is not EvidenceKind.CONFIRMATORY
        )
        runs[cell] = {
            seed: record
            for seed, record in found.items()
            if kinds[seed][0] is EvidenceKind.CONFIRMATORY
        }
    notes = [f"{count} runs are left out: {why}" for why, count in sorted(reasons.items())]
    return replace(evidence, runs=runs), notes


def left_out_tasks(protocol: StudyProtocol, tasks: Sequence[str]) -> list[str]:
    """Return the tasks with a gate that are not in the grid of the tests; see `least_tasks`.

    Args:
        protocol: The experiment's.
        tasks: Those of the grid.
    """
    if protocol.least_tasks is None:
        return []
    return [each for each in dict.fromkeys(g.task for g in protocol.gates) if each not in tasks]


def rates_at_an_end(protocol: StudyProtocol, evidence: Evidence) -> list[str]:
    """Return a note for each end of the tried rates that was chosen: what lies beyond is not known.

    Args:
        protocol: The experiment's.
        evidence: Its test runs, each at the rate that its variant and task chose.
    """
    if len(protocol.rates) == 1:
        return []
    first = [next(iter(runs.values())).config for runs in evidence.runs.values() if runs]
    chosen = [each.get("training", {}).get("learning_rate") for each in first]
    ends = {"largest": max(protocol.rates), "smallest": min(protocol.rates)}
    return [
        f"rates chosen at the {end} that was tried, {rate:g}: {chosen.count(rate)} of "
        f"{len(chosen)}; what a rate beyond it would do is not known"
        for end, rate in ends.items()
        if rate in chosen
    ]


def finished_seeds(protocol: StudyProtocol, evidence: Evidence) -> int:
    """Count the test seeds, in their order, that are finished in every cell."""
    cells = [evidence.runs.get((t, v), {}) for t in evidence.tasks for v in evidence.variants]
    count = 0
    for seed in protocol.test_seeds:
        if not cells or not all(seed in each for each in cells):
            break
        count += 1
    return count


def at_seeds(evidence: Evidence, seeds: Sequence[int]) -> Evidence:
    """Return the part of the runs that belongs to a look."""
    runs = {
        cell: {seed: each for seed, each in found.items() if seed in seeds}
        for cell, found in evidence.runs.items()
    }
    return replace(evidence, runs=runs)


def claim_of(contrast: PlannedContrast) -> str:
    """Return what a contrast claims, as a sentence."""
    if contrast.words:
        return contrast.words
    if contrast.claimed is Claimed.EQUIVALENT:
        return (
            f"{contrast.variant} and {contrast.against} are the same in {contrast.endpoint}, "
            f"within ±{contrast.margin:g}."
        )
    beyond = f" by more than {contrast.margin:g}" if contrast.margin else ""
    return f"{contrast.variant} is better than {contrast.against} in {contrast.endpoint}{beyond}."


def _judge(evidence: Evidence, contrast: PlannedContrast) -> Judged | JudgedClaim:
    claim, variant, against = claim_of(contrast), contrast.variant, contrast.against
    if contrast.endpoint == ESCAPE:
        task = next((each for each in evidence.tasks if each in LEARNED_AT_ONCE), None)
        if task is None:
            return undecided(claim, "no task is left that is learned at once or not yet", 0)
        found = escape_judged(evidence, claim, variant, against, task)
        return found or undecided(claim, f"{task}: no pair is finished", 0)
    is_sign = contrast.endpoint in SIGNS
    hypothesis = (
        Hypothesis(sign=0, margin=contrast.margin)
        if contrast.claimed is Claimed.EQUIVALENT
        else Hypothesis(sign=1, mark=contrast.margin, margin=SIGN_MARGIN if is_sign else MARGIN)
    )
    what, weights = f"{variant} − {against}", difference(variant, against)
    if contrast.beyond is not None:
        weights = interaction(weights, difference(*contrast.beyond))
        what = f"({what}) − ({' − '.join(contrast.beyond)})"
    scores = corrupted_scores(evidence) if contrast.endpoint == CORRUPTED else None
    if contrast.endpoint in READINGS:
        scores = reading_scores(evidence, *READINGS[contrast.endpoint])
    if is_sign:
        scores, what = sign_scores(evidence, contrast.endpoint), f"{contrast.endpoint}: {what}"
    unit = UNITS.get(contrast.endpoint, "points")
    return effect_claim(evidence, claim, weights, hypothesis, what=what, scores=scores, unit=unit)


def _at_look(claim: Judged | JudgedClaim, look: Look) -> Judged | JudgedClaim:
    """Hold a claim to the level of its look: every p counts as p · 5 % / level."""
    if isinstance(claim, JudgedClaim) or claim.verdict.p is None:
        return claim
    scale, same = LEVEL / look.p, claim.verdict.equivalence
    verdict = claim.verdict
    if same is not None:
        verdict = replace(verdict, equivalence=replace(same, p=min(1.0, same.p * scale)))
    return replace(claim, verdict=with_p(verdict, min(1.0, claim.verdict.p * scale)))


def _words(look: Look | None, finished: int, protocol: StudyProtocol) -> str:
    if look is None:
        return f"{finished} of {len(protocol.test_seeds)} test seeds are finished"
    place = protocol.looks.index(look) + 1
    scaled = f" (p is shown times {LEVEL / look.p:.2g}: 0.05 is the bar)" * (look.p != LEVEL)
    return (
        f"look {place} of {len(protocol.looks)} at {look.seeds} test seeds, level {look.p:g}"
        f"{scaled}; contrasts in the order that was fixed before the first run, each a gate to the "
        "next"
    )
