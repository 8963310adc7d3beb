"""Question: a name, a sentence, the trials that answer it, and when it does not apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

import torch

from depthpde.isolation.answer import Answer, Isolation
from depthpde.isolation.runner import AuditRun
from depthpde.isolation.subject import AuditSubject
from depthpde.isolation.trace import ModuleCall
from depthpde.isolation.trial import TOLERANCE, Trial, find_source, moves, size_of_move

OWN_TOLERANCE = {torch.float64: TOLERANCE, torch.float32: 1e-5}
COARSE_TOLERANCE = 1e-2
"""Of 16-bit formats; used only where float64 cannot be run."""


def never(subject: AuditSubject, trial: Trial, source: ModuleCall) -> str:
    """Say of no leak that it is by design."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One row of the audit."""

    name: str
    asks: str
    """In one sentence."""
    excuse: Callable[[AuditSubject], str]
    """Why it does not apply to a subject; empty if it does."""
    trials: Callable[[AuditSubject], Iterable[Trial]]
    """Pairs of runs that must agree."""
    design: Callable[[AuditSubject, Trial, ModuleCall], str] = field(default=never)
    """Why a leak is by design; empty if it is not."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """What one trial showed."""

    trial: Trial
    size: float
    size_float64: float | None
    source: ModuleCall | None
    """The innermost call whose inputs agree and whose outputs do not; None if nothing leaks."""
    changed: ModuleCall | None = None
    """The same call in the other run."""


def answer(question: Question, subject: AuditSubject, *, tolerance: float = 0.0) -> Answer:
    """Run the trials of a question until one leaks.

    Args:
        question: One of the table.
        subject: The model and its batch.
        tolerance: How far an output may move, whatever moves it.
    """
    why = question.excuse(subject)
    if why:
        return _not_applicable(question, why)
    notes, seen, designed = [], [], None
    for trial in question.trials(subject):
        try:
            move = examine(subject, trial, tolerance=tolerance)
        except ValueError as error:
            notes.append(f"{trial.what}: {_reason(error)}")
            continue
        if move is None:
            notes.append(f"{trial.what}: no output to compare")
            continue
        seen.append(move)
        if move.source is None:
            continue
        design = question.design(subject, trial, move.source)
        if not design:
            return _leak(question, move, len(seen), notes, Isolation.LEAK, "")
        designed = designed or _leak(question, move, len(seen), notes, Isolation.BY_DESIGN, design)
    if designed is not None:
        return designed
    if not seen:
        return _not_applicable(question, notes[0] if notes else "nothing could be tried")
    largest = max(seen, key=lambda each: each.size)
    detail = "nothing moves"
    if largest.size > 0:
        detail = f"{largest.trial.what} moves the output by rounding only"
    return Answer(
        name=question.name,
        verdict=Isolation.ISOLATED,
        detail=detail,
        size=largest.size,
        size_float64=largest.size_float64,
        trials=len(seen),
        notes=tuple(notes),
    )


def examine(subject: AuditSubject, trial: Trial, *, tolerance: float = 0.0) -> Move | None:
    """Compare two runs: in the model's precision, then in float64, then module by module.

    Args:
        subject: The model and its batch.
        trial: The two runs.
        tolerance: How far the output may move, whatever moves it.
    """
    size = _compare_outputs(subject, trial, precise=False)
    if size is None:
        return examine_inside(subject, trial)
    if size <= tolerance:
        return Move(trial=trial, size=size, size_float64=None, source=None)
    try:
        precise = _compare_outputs(subject, trial, precise=True)
    except ValueError:
        precise = None
    if precise is None:  # float64 could not be run: what is left is a tolerance
        a, b = (_whole(subject, each) for each in (trial.reference, trial.other))
        if size <= OWN_TOLERANCE.get(a.outputs[0].dtype, COARSE_TOLERANCE):
            return Move(trial=trial, size=size, size_float64=None, source=None)
        return Move(trial=trial, size=size, size_float64=None, source=a, changed=b)
    if precise <= TOLERANCE:
        return Move(trial=trial, size=size, size_float64=precise, source=None)
    layouts = subject.layouts(trial.sequence, traced=True)
    a, b = subject.runner.trace(trial.reference), subject.runner.trace(trial.other)
    source, changed = find_source(trial, layouts, a, b)
    return Move(trial=trial, size=size, size_float64=precise, source=source, changed=changed)


def _whole(subject: AuditSubject, run: AuditRun) -> ModuleCall:
    """Return the call of the model itself, of which only the outputs are known."""
    kind = type(subject.model).__name__
    return ModuleCall("", 0, kind, outputs=subject.runner.outputs(run))


def _compare_outputs(subject: AuditSubject, trial: Trial, *, precise: bool) -> float | None:
    layouts = subject.layouts(trial.sequence, traced=False)
    a = subject.runner.outputs(trial.reference, precise=precise)
    b = subject.runner.outputs(trial.other, precise=precise)
    sizes = [
        size_of_move(trial, layouts.get(("", 0, "out", k), ()), x, y)
        for k, (x, y) in enumerate(zip(a, b, strict=False))
    ]
    known = [each for each in sizes if each is not None]
    return max(known) if known else None


def examine_inside(subject: AuditSubject, trial: Trial) -> Move | None:
    """Compare inside a model whose own output has no sites: the last call that has some judges."""
    layouts = subject.layouts(trial.sequence, traced=True)
    a, b = subject.runner.trace(trial.reference), subject.runner.trace(trial.other)
    others = {(each.name, each.number): each for each in b.walk()}
    pairs = [
        (each, others[each.name, each.number])
        for each in a.walk()
        if (each.name, each.number) in others
    ]
    judged = ((x, y, moves(trial, layouts, x, y)) for x, y in reversed(pairs))
    for _, _, size in islice((each for each in judged if each[2] is not None), 1):
        if size is None or size <= TOLERANCE:
            return Move(trial=trial, size=size or 0.0, size_float64=size, source=None)
        source, changed = find_source(trial, layouts, a, b)
        return Move(trial=trial, size=size, size_float64=size, source=source, changed=changed)
    return None


def _leak(
    question: Question,
    move: Move,
    trials: int,
    notes: list[str],
    verdict: Isolation,
    design: str,
) -> Answer:
    source = move.source
    assert source is not None
    detail = f"{move.trial.what} moves the output"
    return Answer(
        name=question.name,
        verdict=verdict,
        detail=f"{detail}: {design}" if design else detail,
        module=source.name or "(model)",
        kind=source.kind,
        size=move.size,
        size_float64=move.size_float64,
        trials=trials,
        notes=tuple(notes),
    )


def _not_applicable(question: Question, why: str) -> Answer:
    return Answer(name=question.name, verdict=Isolation.NOT_APPLICABLE, detail=why)


def _reason(error: ValueError) -> str:
    """Return the part of a message that says what the model itself objected to."""
    text = str(error).replace("\n", " ")
    _, _, inner = text.partition("from its forward: ")
    return (inner.rpartition("; call the model")[0] or text)[:160]
