"""Every table of the documents is made from the committed records, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from depthpde.report.document import make_report
from depthpde.report.fill import fill, parts_of

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    report = make_report(ROOT / "results", tmp_path_factory.mktemp("report"))
    assert not report.results.broken
    return parts_of(report.chapters, report.results.findings)


@pytest.mark.parametrize("page", ["README.md", "docs/findings.md"])
def test_the_tables_of_a_page_are_those_of_the_records(page, parts):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert fill(text, parts) == text, "run: make results"


def test_a_table_that_was_changed_by_hand_would_be_found(parts):
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert "| baseline |" in text
    wrong = text.replace("| baseline |", "| baseline, improved |")
    assert fill(wrong, parts) == text
