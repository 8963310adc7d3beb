"""AuditReport: the answers to all questions, as a table, as JSON, as a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthpde import __version__
from depthpde.files import write_whole
from depthpde.isolation.answer import Answer, Isolation, sentence
from depthpde.isolation.page import render_page
from depthpde.pages.formatting import text_block


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit found.

    >>> model = dp.LanguageModel(dp.ModelConfig(dim=16, blocks=1, vocabulary=9, length=12))
    >>> report = dp.audit(model, torch.randint(9, (2, 12)), questions=["future"])
    >>> isinstance(report, dp.AuditReport), [each.name for each in report.leaks]
    (True, [])
    """

    model: str
    """Its class."""
    answers: tuple[Answer, ...]
    """One for each question, in order."""

    def __getitem__(self, name: str) -> Answer:
        """Return the answer to a question by its name."""
        return {each.name: each for each in self.answers}[name]

    @property
    def leaks(self) -> tuple[Answer, ...]:
        """The answers that name a leak."""
        return tuple(each for each in self.answers if each.verdict is Isolation.LEAK)

    @property
    def found(self) -> str:
        """How many leaks there are, in words."""
        return {0: "no leak", 1: "1 leak"}.get(len(self.leaks), f"{len(self.leaks)} leaks")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "model": self.model,
            "depthpde": __version__,
            "leaks": [each.name for each in self.leaks],
            "answers": [each.to_dict() for each in self.answers],
        }

    def __str__(self) -> str:
        """Return a table that a person can read."""
        lines = [f"{self.model}: {self.found}"]
        for each in self.answers:
            verdict = f"{each.verdict.mark} {each.verdict.value}"
            lines.append(f"  {each.name:<11}{verdict:<17}{sentence(each)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return text_block(str(self))

    def save(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML page; its folder is made.

        Args:
            path: The file.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_whole(path, render_page(self.model, self.found, self.answers))
