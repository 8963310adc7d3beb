"""Does padding change a real token: by what stands in it, or by how much of it there is?

    content    [pad | x] and [pad′ | x], one row padded, its neighbours not
    amount     [x]       and [pad | x],  every row alike

Left and right are tried apart. With padding on the left a model that takes `position_ids` is given
those of the real tokens, in both runs, as generation does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch

from depthpde.isolation.batch import CallBatch, Sequence
from depthpde.isolation.question import Question
from depthpde.isolation.runner import single
from depthpde.isolation.subject import AuditSubject, where_sites
from depthpde.isolation.trace import ModuleCall
from depthpde.isolation.trial import Trial

AMOUNT = 3
FIRST_ROW = slice(0, 1)


def _excuse(subject: AuditSubject) -> str:
    if not subject.batch.sequences:
        return "its input has no sequence of tokens"
    if subject.incomplete:
        return subject.incomplete
    if not any(each.mask for each in subject.batch.sequences):
        return "the model takes no mask of padding"
    return ""


def _trials(subject: AuditSubject) -> Iterator[Trial]:
    for sequence in subject.batch.sequences:
        if sequence.mask is None:
            continue
        for side in ("right", "left"):
            for build in (_content, _amount):
                yield build(subject, sequence, side)


def _content(subject: AuditSubject, sequence: Sequence, side: str) -> Trial:
    left, right = _amounts(side)
    real = slice(left, left + sequence.length)
    mark = _mark(subject.batch, sequence, left, right)
    mark[1:] = False
    padded = subject.batch.padded(sequence, left, right, mark=mark)
    padded = _placed(padded, sequence, side, mark)
    return Trial(
        what=f"the content of {_named(sequence, side)}",
        reference=single(padded, sequence),
        other=single(padded.changed(sequence.key, mark), sequence),
        sequence=sequence,
        rows=(FIRST_ROW, FIRST_ROW),
        sites=(real, real),
        compares=_compares(subject, sequence),
    )


def _amount(subject: AuditSubject, sequence: Sequence, side: str) -> Trial:
    left, right = _amounts(side)
    real = slice(left, left + sequence.length)
    mark = _mark(subject.batch, sequence, left, right)
    padded = subject.batch.padded(sequence, left, right, mark=mark)
    none = torch.zeros(subject.batch.rows, sequence.length, dtype=torch.bool)
    plain = _placed(subject.batch.masked(sequence, ~none), sequence, side, none)
    return Trial(
        what=f"the amount of {_named(sequence, side)}",
        reference=single(plain, sequence),
        other=single(_placed(padded, sequence, side, mark), sequence),
        sequence=sequence,
        sites=(slice(None), real),
        compares=_compares(subject, sequence),
    )


def _compares(subject: AuditSubject, sequence: Sequence) -> Literal["sites", "rows"]:
    """Compare what is pooled over real sites too; a decoder's last site is none of it."""
    return "sites" if sequence.decoder or subject.causal else "rows"


def _placed(batch: CallBatch, sequence: Sequence, side: str, mark: torch.Tensor) -> CallBatch:
    name = "decoder_position_ids" if sequence.decoder else "position_ids"
    if side == "right" or name not in batch.accepts:
        return batch
    places = ((~mark).long().cumsum(dim=1) - 1).clamp(min=0)
    return batch.having({name: places.to(batch.values[sequence.key].device)})


def _mark(batch: CallBatch, sequence: Sequence, left: int, right: int) -> torch.Tensor:
    longer = left + sequence.length + right
    real = where_sites(batch, longer, slice(left, left + sequence.length))
    return ~real


def _amounts(side: str) -> tuple[int, int]:
    return (AMOUNT, 0) if side == "left" else (0, AMOUNT)


def _named(sequence: Sequence, side: str) -> str:
    return f"{side} padding of the decoder" if sequence.decoder else f"{side} padding"


def _design(subject: AuditSubject, trial: Trial, source: ModuleCall) -> str:
    """Positions that count padding, in a model that cannot be told its positions."""
    if "amount of left" not in trial.what or "position_ids" in subject.batch.accepts:
        return ""
    table = any(part in source.kind.lower() for part in ("position", "encoding", "embedding"))
    return "its positions count from the first site, and it takes no position_ids" * table


QUESTION = Question(
    name="padding",
    asks="does padding, its content or its amount, change a real token?",
    excuse=_excuse,
    trials=_trials,
    design=_design,
)
