"""Every question of a report with its answer; rates and gates stand beneath their experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.evidence import Evidence
from depthpde.records.protocols.steps import STAGES, stage_of
from depthpde.report.grid_section import GridSection
from depthpde.report.sentences import Sentence

NOT_TESTED = Sentence(
    "–", "plain", "No test seed has run:", "rates are chosen and gates passed before"
)


@dataclass(frozen=True, slots=True)
class ReportQuestion:
    """One experiment, or one stage of it."""

    name: str
    text: str
    page: str
    """Where its answer stands; empty before its first test run."""
    verdict: Sentence
    stages: tuple[ReportQuestion, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """One line of the contents."""

    name: str
    href: str
    """Empty for what has no page of its own."""
    parts: tuple[Link, ...] = ()


def list_questions(
    grid_sections: Sequence[GridSection], pages: Mapping[str, str]
) -> list[ReportQuestion]:
    """List the questions in the order of their sections, each with its stages.

    Args:
        grid_sections: What is known.
        pages: Name of a grid → where it stands.
    """
    found: dict[str, ReportQuestion] = {}
    for each in grid_sections:
        name, text = each.evidence.name, each.evidence.question
        stage = stage_of(name)
        if stage is None:
            found[name] = ReportQuestion(name, text, pages[name], each.verdict[0])
            continue
        study, part = stage
        if study not in found:
            about = EXPERIMENTS[study].question if study in EXPERIMENTS else ""
            found[study] = ReportQuestion(study, about, "", NOT_TESTED)
        asked = ReportQuestion(part, text, pages[name], _progress(each.evidence))
        stages = sorted((*found[study].stages, asked), key=lambda q: list(STAGES).index(q.name))
        found[study] = replace(found[study], stages=tuple(stages))
    return list(found.values())


def _progress(evidence: Evidence) -> Sentence:
    finished = sum(map(len, evidence.runs.values()))
    return Sentence("", "plain", "", f"{finished} of {finished + len(evidence.missing)} runs")


def contents_of(questions: Sequence[ReportQuestion]) -> list[Link]:
    """Return the lines of the contents that lead to questions and their stages."""
    return [Link(q.name, q.page, tuple(contents_of(q.stages))) for q in questions]
