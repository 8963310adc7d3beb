"""Does a later token change an earlier one?

u_j changed for j ≥ t     ⇒     no output at i < t may move
"""

from __future__ import annotations

from collections.abc import Iterator

from depthpde.isolation.batch import CallBatch, Sequence
from depthpde.isolation.question import Question
from depthpde.isolation.runner import AuditRun, single
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
    reference = single(subject.batch, sequence)
    for cut in sorted({1, sequence.length // 2, sequence.length - 1}):
        yield change_from(cut, subject.batch, sequence, reference)


def change_from(
    cut: int, batch: CallBatch, sequence: Sequence, reference: AuditRun, *, seed: int = 1
) -> Trial:
    """Return the trial that changes all sites from one on.

    Args:
        cut: The first site that is changed.
        batch: What the model is called with.
        sequence: Whose sites are meant.
        reference: The run on the batch as it is.
        seed: Of the change.
    """
    where = where_sites(batch, sequence.length, slice(cut, None))
    before = slice(0, cut)
    return Trial(
        what=f"changing the sites from {cut} on",
        reference=reference,
        other=single(batch.changed(sequence.key, where, seed), sequence),
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
