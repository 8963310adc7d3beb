"""Does another row of the batch change this one?

rows 2 … changed, row 1 must stay      row 1 changed, the last must stay      row 1 alone
"""

from __future__ import annotations

from collections.abc import Iterator

from depthpde.isolation.question import Question
from depthpde.isolation.runner import single
from depthpde.isolation.subject import AuditSubject, where_rows
from depthpde.isolation.trial import Trial


def _excuse(subject: AuditSubject) -> str:
    return ""


def _trials(subject: AuditSubject) -> Iterator[Trial]:
    batch = subject.batch
    first, last = slice(0, 1), slice(batch.rows - 1, batch.rows)
    for what, changed, kept in (
        ("changing the rows behind it", slice(1, None), first),
        ("changing the row before it", first, last),
    ):
        yield Trial(
            what=what,
            reference=subject.plain,
            other=single(batch.changed(batch.key, where_rows(batch, changed))),
            rows=(kept, kept),
            compares="rows",
        )
    yield Trial(
        what="leaving a row alone in its batch",
        reference=subject.plain,
        other=single(batch.narrowed(first)),
        rows=(first, first),
        compares="rows",
    )


QUESTION = Question(
    name="neighbour",
    asks="does another row of the batch change this one?",
    excuse=_excuse,
    trials=_trials,
)
