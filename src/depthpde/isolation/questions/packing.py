"""Does one packed document change another?

[a | b]   →   [a′ | b]   must not move b          and the reverse
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from depthpde.isolation.batch import CallBatch, Sequence
from depthpde.isolation.question import Question
from depthpde.isolation.runner import single
from depthpde.isolation.subject import AuditSubject, where_sites
from depthpde.isolation.trace import ModuleCall
from depthpde.isolation.trial import Trial

SEGMENTS = ("segments", "segment_ids", "document_ids", "doc_ids", "documents", "seq_idx")
"""Arguments that number the documents of a row, site by site."""


def _excuse(subject: AuditSubject) -> str:
    sequence = subject.main
    if sequence is None:
        return "its input has no sequence of tokens"
    if sequence.decoder:
        return "documents are packed in models of one stack"
    if _segments(subject) is None and not _by_positions(subject):
        return "the model takes neither document numbers nor position_ids"
    return ""


def _trials(subject: AuditSubject) -> Iterator[Trial]:
    sequence = subject.main
    assert sequence is not None
    middle = sequence.length // 2
    packed = _packed(subject, sequence, middle)
    reference = single(packed)
    for what, changed, kept in (
        ("the first document", slice(0, middle), slice(middle, None)),
        ("the second document", slice(middle, None), slice(0, middle)),
    ):
        where = where_sites(packed, sequence.length, changed)
        yield Trial(
            what=f"changing {what} of a packed row",
            reference=reference,
            other=single(packed.changed(sequence.key, where)),
            sequence=sequence,
            sites=(kept, kept),
        )


def _packed(subject: AuditSubject, sequence: Sequence, middle: int) -> CallBatch:
    batch = subject.batch
    device = batch.values[sequence.key].device
    site = torch.arange(sequence.length, device=device).expand(batch.rows, -1)
    values: dict[str | int, Any] = {}
    name = _segments(subject)
    if name is not None:
        values[name] = (site >= middle).long()
    if "position_ids" in batch.accepts:
        values["position_ids"] = torch.where(site >= middle, site - middle, site)
    if sequence.mask is not None:
        values[sequence.mask] = None  # a mask of padding would hide the walls
    if "use_cache" in batch.accepts:
        values["use_cache"] = False  # with a cache, transformers reads no walls from positions
    return batch.having(values)


def _segments(subject: AuditSubject) -> str | None:
    if subject.segments is not None:
        return subject.segments
    return next((name for name in SEGMENTS if name in subject.batch.accepts), None)


def _by_positions(subject: AuditSubject) -> bool:
    return "position_ids" in subject.batch.accepts


def _design(subject: AuditSubject, trial: Trial, source: ModuleCall) -> str:
    if _segments(subject) is not None or subject.batch.packed:
        return ""
    return "position_ids that begin anew are no wall here; pack with a block-diagonal mask"


QUESTION = Question(
    name="packing",
    asks="does one packed document change another?",
    excuse=_excuse,
    trials=_trials,
    design=_design,
)
