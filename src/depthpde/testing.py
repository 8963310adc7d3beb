"""Assertions for the tests of any model: nothing reaches what it must not.

>>> model = dp.LanguageModel(dp.ModelConfig(dim=16, blocks=1, vocabulary=9, length=12))
>>> report = dp.testing.assert_isolated(model, torch.randint(9, (2, 12)), causal=True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

    from depthpde.isolation.report import AuditReport


def assert_isolated(
    model: nn.Module,
    batch: Tensor | tuple[Any, ...] | Mapping[str, Any],
    *,
    causal: bool | None = None,
    questions: Sequence[str] | None = None,
    segments: str | None = None,
) -> AuditReport:
    """Fail with the whole table if a question of the audit finds a leak.

    Args:
        model: As in `depthpde.audit`.
        batch: As in `depthpde.audit`.
        causal: True for a decoder: no site may see its future.
        questions: Names of those to ask; all by default.
        segments: The argument that numbers packed documents, if it has an unusual name.

    Example:
        >>> def test_my_model_is_isolated():
        ...     dp.testing.assert_isolated(build(), tokens, causal=True)
    """
    from depthpde.isolation.audit import audit

    report = audit(model, batch, causal=causal, questions=questions, segments=segments)
    if report.leaks:
        raise AssertionError(str(report))
    return report
