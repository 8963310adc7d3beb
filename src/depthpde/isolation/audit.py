"""audit(model, batch) → AuditReport: does anything reach what it must not?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from depthpde.errors import check_flag, check_name, check_range, shown
from depthpde.insertion.calling import check_batch, check_has_weights
from depthpde.insertion.compiled import check_not_compiled
from depthpde.isolation.batch import given_values, read_batch
from depthpde.isolation.question import answer
from depthpde.isolation.questions.table import QUESTIONS
from depthpde.isolation.report import AuditReport
from depthpde.isolation.subject import declared_causal, opened


def audit(
    model: nn.Module,
    batch: Tensor | tuple[Any, ...] | Mapping[str, Any],
    *,
    causal: bool | None = None,
    questions: Sequence[str] | None = None,
    segments: str | None = None,
    tolerance: float = 0.0,
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
        tolerance: How far an output may move, relative to its size; 0 allows rounding alone, which
            float64 tells apart. With 1e-5 a large float32 model needs no weights in float64.

    >>> model = dp.LanguageModel(dp.ModelConfig(dim=16, blocks=1, vocabulary=9, length=12))
    >>> report = dp.audit(model, torch.randint(9, (2, 12)), causal=True)
    >>> assert not report.leaks, report
    """
    if questions is not None and (
        isinstance(questions, str) or not isinstance(questions, Sequence)
    ):
        raise ValueError(
            f'`questions` must be a list of names, got {shown(questions)}; use ["future"]'
        )
    names = [check_name("questions", each, QUESTIONS) for each in questions or QUESTIONS]
    if causal is not None:
        check_flag("causal", causal)
    check_range("tolerance", tolerance, 0.0, 1.0)
    check_not_compiled(model, "it is audited")
    check_has_weights(model, "it is audited")
    check_batch(model, given_values(batch), name="batch")
    read = read_batch(model, batch)
    if segments is not None:
        check_name("segments", segments, sorted(read.accepts))
    meant = declared_causal(model) if causal is None else causal
    with opened(model, read, causal=meant, segments=segments) as subject:
        subject.check_numbers()
        answers = tuple(answer(QUESTIONS[name], subject, tolerance=tolerance) for name in names)
    return AuditReport(model=type(model).__name__, answers=answers)
