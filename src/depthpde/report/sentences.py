"""What the numbers say, in sentences: which variant helps, which harms, and against what."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from depthpde.pages.formatting import counted, format_interval, format_p, plain, signed
from depthpde.papers.protocol_table import awaited_look, tested_claims
from depthpde.records.evidence import Evidence, lacking, over_all
from depthpde.records.findings import JudgedClaim, spell_effect
from depthpde.records.protocols.steps import STAGES, stage_of
from depthpde.records.record import Record
from depthpde.records.run_model import VariantRole
from depthpde.records.statistics.paired import LEVEL
from depthpde.records.statistics.stratified import Overall
from depthpde.records.ungrouped import BASELINE, UNGROUPED
from depthpde.records.verdicts import Outcome

MARKS = {
    Outcome.SUPPORTED: "✓",
    Outcome.SMALLER: "↓",
    Outcome.CONTRADICTED: "✗",
    Outcome.EQUIVALENT: "=",
    Outcome.INCONCLUSIVE: "?",
    Outcome.WAITING: "–",
}
"""Verdict → its mark on every page."""
TONES = {Outcome.SUPPORTED: "ours", Outcome.CONTRADICTED: "warning"}
"""Verdict of a test → the tone of its sentence; plain for the rest."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One thing that the numbers say."""

    mark: str
    """A sign beside it, so that nothing is told by colour alone."""
    tone: str
    """``ours``, ``warning`` or ``plain``."""
    strong: str
    """What it says."""
    text: str
    """On what grounds."""
    settled: bool = False
    """Whether a test that was laid down before the first run decided it, either way."""


def judge(evidence: Evidence) -> list[Sentence]:
    """Describe what a grid shows, the most important first.

    A variant is said to help or harm only if it has six pairs on every task, its p, corrected for
    all variants of the grid, is at most 5 %, and its interval leaves out zero. The best variant is
    chosen by the same numbers that describe it: its corrected p allows for the choice, its
    interval does not. Runs that choose a rate or open a gate are no result, whatever they show. A
    grid under a protocol is judged by the tests that it names, and not before its first look.
    """
    if stage := stage_of(evidence.name):
        grounds = f"its runs {STAGES[stage[1]]} {stage[0]}"
        return [Sentence("–", "plain", "No result by itself:", grounds), *_unfinished(evidence)]
    if protocol := awaited_look(evidence):
        grounds = f"its protocol, {protocol.digest}, judges from {protocol.looks[0].seeds} seeds on"
        return [Sentence("–", "plain", "Not judged yet:", grounds), *_unfinished(evidence)]
    if claims := tested_claims(evidence):
        return [*map(_tested, claims), *_unfinished(evidence)]
    overall = over_all(evidence)
    ours = {name: o for name, o in overall.items() if evidence.role(name) is VariantRole.OURS}
    controls = {
        name: o for name, o in overall.items() if evidence.role(name) is VariantRole.CONTROL
    }
    sentences = _unfinished(evidence)
    if not overall:
        return sentences or [_nothing(evidence)]
    if not ours or not controls:  # a grid about more than diffusion: all are judged alike
        ours, controls = overall, {}
    best = max(ours, key=lambda name: ours[name].mean)
    few = lacking(evidence, best) or ours[best].warning
    about_best = _best(best, ours, len(overall), few)
    sentences = [*about_best, *_against(evidence, best, controls), *sentences]
    worst = min(ours, key=lambda name: ours[name].mean)
    if ours[worst].mean < 0 and not lacking(evidence, worst) and _apart(ours[worst], "p_holm"):
        grounds = _grounds(ours[worst], len(overall))
        sentences.insert(1, Sentence("▼", "warning", f"{_title(worst)} harms:", grounds))
    return sentences


def _tested(claim: JudgedClaim) -> Sentence:
    """Tell one test of a protocol: its verdict, what was claimed, and the number that decides."""
    grounds = f"“{claim.claim.rstrip('.')}”"
    if claim.effect is not None:  # cosines and decades are lost in one digit
        grounds += f": found {spell_effect(claim, unit=True).replace('-', '−')}"
    grounds += f", n\u00a0=\u00a0{claim.n}"
    if claim.closed_by:
        grounds += "; not reached by the order of tests"
    settled = claim.verdict not in (Outcome.INCONCLUSIVE, Outcome.WAITING)
    tone = TONES.get(claim.verdict, "plain")
    strong = f"{str(claim.verdict).capitalize()}:"
    return Sentence(MARKS[claim.verdict], tone, strong, grounds, settled)


def _apart(found: Overall, p: str) -> bool:
    """Return whether a difference is shown: by its p and by its interval, which may disagree."""
    return bool(found.clear and getattr(found, p) <= LEVEL)


def _best(best: str, ours: dict[str, Overall], compared: int, few: str | None) -> list[Sentence]:
    found, grounds = ours[best], _grounds(ours[best], compared)
    if found.mean > 0 and not few and _apart(found, "p_holm"):
        most = " most" if len(ours) > 1 else ""
        return [Sentence("▲", "ours", f"{_title(best)} helps{most}:", grounds)]
    which = f"the best of {len(ours)}, {plain(best)}" if len(ours) > 1 else plain(best)
    if few:
        return [Sentence("?", "plain", "Too few pairs to tell:", f"{which}, is at {grounds}")]
    words = "Nothing is" if len(ours) > 1 else f"{_title(best)} is not"
    return [Sentence("–", "plain", f"{words} shown to help:", f"{which}, is at {grounds}")]


def _against(evidence: Evidence, best: str, controls: dict[str, Overall]) -> list[Sentence]:
    """Compare the best of ours with the best control, seed by seed."""
    if not controls:
        return []
    control = max(controls, key=lambda name: controls[name].mean)
    pair = evidence.select(variants=[best, control])
    found = over_all(pair, against=control).get(best)
    if found is None:
        return []
    of = f"the best of {len(controls)} controls" if len(controls) > 1 else "the control"
    numbers = (
        f"{signed(found.mean)} {format_interval(found.interval)} against {plain(control)}, {of}"
    )
    grounds = f"{plain(best)} is at {numbers}; p\u00a0{_p(found.p)} for this pair alone"
    if lacking(evidence, best, control) or not _apart(found, "p"):
        return [Sentence("≈", "plain", "Not shown to differ from the best control:", grounds)]
    if found.mean > 0:
        return [Sentence("▲", "ours", "More than the controls give:", grounds)]
    return [Sentence("▼", "warning", "Less than a control gives:", grounds)]


def _unfinished(evidence: Evidence) -> list[Sentence]:
    finished = sum(len(runs) for runs in evidence.runs.values())
    asked = finished + len(evidence.missing)
    if finished == asked:
        return []
    return [Sentence("⚠", "warning", "Preliminary:", f"{finished} of {asked} runs have a result")]


def _nothing(evidence: Evidence) -> Sentence:
    runs = counted(sum(len(runs) for runs in evidence.runs.values()), "run")
    grounds = [f"{runs}, none that makes a pair", *_next_step(evidence)]
    return Sentence("–", "plain", "Nothing is compared:", "; ".join(grounds))


def _next_step(evidence: Evidence) -> list[str]:
    """Describe how runs of no grid come to a pair; a grid that compares nothing was meant to."""
    runs = [run for variant in evidence.variants for run in evidence.records(variant)]
    if evidence.name != UNGROUPED or not runs:
        return []
    alike = "with the same --out, seed and settings, such as"
    changed = [run for run in runs if run.label != BASELINE]
    if changed:
        return [f"train the baseline {alike}: {_train(changed[0])}"]
    return [f"train another model {alike}: {_train(runs[0])} --position after_embedding"]


def _train(run: Record) -> str:
    """Return the command that trains the baseline of a run, as far as an option tells it."""
    training = run.config.get("training")
    updates = training.get("updates") if isinstance(training, Mapping) else None
    words = ["depthpde", "train", run.task, "--seed", str(run.seed)]
    return shlex.join([*words, "--updates", str(updates)] if isinstance(updates, int) else words)


def _grounds(found: Overall, compared: int) -> str:
    tasks = f"mean of {found.tasks} tasks" if found.tasks > 1 else "one task"
    pairs = "1 pair" if found.n == 1 else f"{found.n} pairs"
    among = f" after Holm over {compared} variants" if compared > 1 else ""
    return (
        f"{signed(found.mean)} points over the baseline {format_interval(found.interval)}, "
        f"{tasks}, n = {pairs}, p\u00a0{_p(found.p_holm)}{among}"
    )


def _p(p: float) -> str:
    sentences = format_p(p)
    return (sentences if sentences.startswith("<") else f"= {sentences}").replace(" ", "\u00a0")


def _title(name: str) -> str:
    words = plain(name)
    return words[:1].upper() + words[1:]
