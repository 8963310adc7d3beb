"""An audit as one page: a row for each question, with its sentence. No network, no script."""

from __future__ import annotations

from collections.abc import Sequence

from depthpde.isolation.answer import Answer, Isolation, sentence
from depthpde.isolation.questions.table import QUESTIONS
from depthpde.pages.resources import read_text
from depthpde.pages.templates import render_document


def render_page(model: str, found: str, answers: Sequence[Answer]) -> str:
    """Render an audit as one self-contained HTML page.

    Args:
        model: What was audited.
        found: How many leaks there are, in words.
        answers: One for each question.
    """
    return render_document(
        "depthpde.isolation",
        "audit.html",
        style=read_text("depthpde.isolation", "audit.css"),
        model=model,
        found=found,
        leaks=any(each.verdict is Isolation.LEAK for each in answers),
        answers=answers,
        asks={name: each.asks for name, each in QUESTIONS.items()},
        sentence=sentence,
    )
