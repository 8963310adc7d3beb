"""Does a later token change an earlier one?

u_j changed for j ≥ t     ⇒     no output at i < t may move
"""

from __future__ import annotations

from collections.abc import Iterator

from depthpde.isolation.question import Question
from depthpde.isolation.runner import single
from depthpde.isolation.subject import AuditSubject, where_sites
from depthpde.isolation.trace import ModuleCall
from depthpde.isolation.trial import Trial


def _excuse(subject: AuditSubject) -> str:
    if subject.main is None:
        return "its input has no sequence of tokens"
    if subject.incomplete:
        return subject.incomplete
    if subject.causal is False:
        return "every site may see every other (causal=False)"
    return ""


def _trials(subject: AuditSubject) -> Iterator[Trial]:
    sequence = subject.main
    assert sequence is not None
    batch, length = subject.batch, sequence.length
    reference = single(batch, sequence)
    for cut in sorted({1, length // 2, length - 1}):
        where = where_sites(batch, length, slice(cut, None))
        before = slice(0, cut)
        yield Trial(
            what=f"changing the sites from {cut} on",
            reference=reference,
            other=single(batch.changed(sequence.key, where), sequence),
            sequence=sequence,
            sites=(before, before),
        )


def _design(subject: AuditSubject, trial: Trial, source: ModuleCall) -> str:
    if subject.causal:
        return ""
    return "an encoder's sites see each other; pass causal=True if this model must not"


QUESTION = Question(
    name="future",
    asks="does a later token change an earlier one?",
    excuse=_excuse,
    trials=_trials,
    design=_design,
)
