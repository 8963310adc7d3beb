"""audit(model, batch) → AuditReport: does anything reach what it must not?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.errors import check_name
from depthpde.insertion.calling import check_batch, check_has_weights, quiet
from depthpde.insertion.compiled import check_not_compiled
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.moved import moved_weights
from depthpde.isolation.answer import Answer
from depthpde.isolation.batch import given_values, read_batch
from depthpde.isolation.question import answer
from depthpde.isolation.questions.table import QUESTIONS
from depthpde.isolation.report import AuditReport
from depthpde.isolation.runner import AuditRun, Runner
from depthpde.isolation.subject import AuditSubject, declared_causal


def audit(
    model: nn.Module,
    batch: Tensor | tuple[Any, ...] | Mapping[str, Any],
    *,
    causal: bool | None = None,
    questions: Sequence[str] | None = None,
    segments: str | None = None,
) -> AuditReport:
    """Ask six questions of a model: what reaches what it must not, and through which module.

        future · padding · packing · cache · neighbour · memory

    Each compares two runs that must agree. What moves is run again in float64: rounding vanishes,
    a leak stays, and is followed to the innermost module whose inputs agree and whose outputs do
    not. The model runs in eval mode without gradients (train mode for one trial) and is left as it
    was. Inserted layers take part away from the identity.

    Args:
        model: Any module.
        batch: One tensor, or the positional or named arguments of the model; a few short rows
            are enough, every row needs four real sites.
        causal: True if no site may see its future; by default what the model's class, config or
            flag says, and where that says nothing a site that sees its future is by design.
        questions: Names of those to ask; all by default.
        segments: The argument that numbers packed documents, if it has an unusual name.

    >>> model = dp.LanguageModel(dp.ModelConfig(dim=16, blocks=1, vocabulary=9, length=12))
    >>> report = dp.audit(model, torch.randint(9, (2, 12)), causal=True)
    >>> assert not report.leaks, report
    """
    names = [check_name("questions", each, QUESTIONS) for each in questions or QUESTIONS]
    check_not_compiled(model, "it is audited")
    check_has_weights(model, "it is audited")
    check_batch(model, given_values(batch), name="batch")
    read = read_batch(model, batch)
    if segments is not None:
        check_name("segments", segments, sorted(read.accepts))
    with quiet(model):
        runner = Runner(model, moved_weights(model, inside=PREFIX))
        try:
            subject = AuditSubject(
                model=model,
                batch=read,
                runner=runner,
                causal=declared_causal(model) if causal is None else causal,
                segments=segments,
            )
            answers = _ask(subject, names)
        finally:
            runner.close()
    return AuditReport(model=type(model).__name__, answers=tuple(answers))


def _ask(subject: AuditSubject, names: Sequence[str]) -> list[Answer]:
    _silence(subject)
    return [answer(QUESTIONS[name], subject) for name in names]


def _silence(subject: AuditSubject) -> None:
    """Leave dropout out of every question but that of memory, if eval mode draws random numbers."""
    runner, plain = subject.runner, subject.plain
    again = AuditRun(calls=plain.calls, rows=plain.rows, length=plain.length, seed=1)
    first, second = runner.outputs(plain), runner.outputs(again)
    if not all(_same(a, b) for a, b in zip(first, second, strict=False)):
        runner.silence()


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
