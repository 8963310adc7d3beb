"""Does a call leave something behind, and do train and eval agree apart from dropout?

f(x)  =  f(x) after f(x)  =  f(x) after f(y)  =  f(x) in train mode, every dropout the identity
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from depthpde.isolation.question import Question
from depthpde.isolation.runner import AuditRun, Call, single
from depthpde.isolation.subject import AuditSubject, where_rows
from depthpde.isolation.trace import ModuleCall
from depthpde.isolation.trial import Trial

TRAINING = "train mode without dropout"


def _excuse(subject: AuditSubject) -> str:
    return ""


def _trials(subject: AuditSubject) -> Iterator[Trial]:
    batch = subject.batch
    plain = single(batch, live=True) if subject.runner.silent else subject.plain
    other = batch.changed(batch.key, where_rows(batch, slice(None)))
    shorter = batch.narrowed(slice(0, 1))
    if subject.main is not None:
        shorter = batch.cut(subject.main, slice(0, subject.main.length - 1))
    befores = {
        "the same call before": batch,
        "another call before": other,
        "a smaller call before": shorter,
    }
    for what, before in befores.items():

        def calls(call: Call, before: object = before) -> None:
            call(before)  # type: ignore[arg-type]
            call(batch)

        twice = AuditRun(calls=calls, rows=plain.rows, length=plain.length, live=True)
        yield Trial(what=what, reference=plain, other=twice, compares="all")
    trained = single(batch, training=True)
    if not _is_random(subject, trained):
        yield Trial(what=TRAINING, reference=subject.plain, other=trained, compares="all")


def _is_random(subject: AuditSubject, run: AuditRun) -> bool:
    """Tell whether train mode draws random numbers beside dropout, as masks of time do."""
    try:
        first, plain = subject.runner.outputs(run), subject.runner.outputs(subject.plain)
        if len(first) == len(plain) and all(map(torch.equal, first, plain)):
            return False  # or none that matters: it gives what eval mode does
        second = subject.runner.outputs(replace(run, seed=1))
    except ValueError:  # the trial itself will say why train mode cannot be run
        return False
    return not all(torch.equal(a, b) for a, b in zip(first, second, strict=False))


def _design(subject: AuditSubject, trial: Trial, source: ModuleCall) -> str:
    normal = trial.what == TRAINING and "BatchNorm" in source.kind
    return "batch norm takes the batch's own moments in training" * normal


QUESTION = Question(
    name="memory",
    asks="does a call leave something behind, and do train and eval agree apart from dropout?",
    excuse=_excuse,
    trials=_trials,
    design=_design,
)
