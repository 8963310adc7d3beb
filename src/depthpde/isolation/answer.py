"""Answer: what one question found, as a value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Isolation(StrEnum):
    """The verdict on one question.

    >>> "leak" in [each.value for each in dp.Isolation]
    True
    """

    ISOLATED = "isolated"
    """Nothing reaches what it must not."""
    LEAK = "leak"
    """Something does."""
    BY_DESIGN = "by design"
    """Something does, and a model of this kind promises nothing else."""
    NOT_APPLICABLE = "does not apply"
    """The question cannot be asked, for a reason that is given."""

    @property
    def mark(self) -> str:
        """A sign beside the word, so that no verdict is told by colour alone."""
        return {"isolated": "✓", "leak": "✗", "by design": "·"}.get(self.value, "–")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question, answered.

    >>> dp.Answer(name="future", verdict=dp.Isolation("isolated"), detail="nothing moved").name
    'future'
    """

    name: str
    verdict: Isolation
    detail: str
    """What was changed and what moved, or why the question does not apply."""
    module: str = ""
    """The innermost module whose inputs agree and whose outputs do not; empty if none moves."""
    kind: str = ""
    """Its class."""
    size: float = 0.0
    """The largest move in the model's own precision, relative to its largest output."""
    size_float64: float | None = None
    """The same in float64; None where nothing moved, or where float64 could not be run."""
    trials: int = 0
    """How many pairs of runs were compared."""
    notes: tuple[str, ...] = ()
    """What could not be tried."""

    @property
    def rounding(self) -> bool:
        """Whether something moved that float64 shows to be rounding."""
        return self.verdict is Isolation.ISOLATED and self.size > 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "verdict": self.verdict.value, "rounding": self.rounding}


def sentence(answer: Answer) -> str:
    """Return an answer's detail, module and size in one sentence."""
    text = answer.detail
    if answer.module:
        text += f", first through {answer.module} ({answer.kind})"
    if answer.size > 0:
        text += f", by {answer.size:.2g}"
        if answer.size_float64 is None:
            text += " (float64 could not be run)"
        else:
            text += f" (in float64 {answer.size_float64:.2g})"
    return text
