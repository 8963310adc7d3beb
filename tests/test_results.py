"""The committed report and every table of the documents are made from the records, to the byte."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from depthpde.pages.formatting import file_names
from depthpde.records.record import RUNS
from depthpde.report.markdown_blocks import fill_blocks, parts_of
from depthpde.report.page import make_report
from depthpde.report.provenance import trace
from depthpde.report.site import render_site

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    made = make_report(ROOT / "results", tmp_path_factory.mktemp("report"))
    assert not made.results.broken
    return made


@pytest.fixture(scope="module")
def parts(report):
    return parts_of(report.grid_sections, report.results.findings)


def test_the_committed_pages_are_those_of_the_records(report):
    origin = trace(report.results.records, [each.evidence for each in report.grid_sections])
    pages = render_site(report.results, report.grid_sections, origin, runs=f"../{RUNS}")
    folder = ROOT / "results" / "report"
    kept = {each.name: each.read_text(encoding="utf-8") for each in folder.glob("*.html")}
    assert kept.keys() == pages.keys(), "run: make results"
    assert kept == pages


def test_every_committed_page_is_at_most_half_a_megabyte():
    sizes = {
        each.name: each.stat().st_size for each in (ROOT / "results" / "report").glob("*.html")
    }
    assert len(sizes) > 30
    assert max(sizes.values()) <= 500_000, max(sizes, key=sizes.__getitem__)


@pytest.mark.parametrize("part", ["tables", "tables/claims", "figures"])
def test_the_committed_tables_and_figures_are_those_of_the_records(part, report):
    made, kept = (
        {each.name: each.read_bytes() for each in (folder / part).iterdir() if each.is_file()}
        for folder in (report.page.parent, ROOT / "results" / "report")
    )
    assert made.keys() == kept.keys(), "run: make results"
    assert made == kept


@pytest.mark.parametrize("page", ["README.md", "docs/findings.md"])
def test_the_tables_of_a_page_are_those_of_the_records(page, parts):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert fill_blocks(text, parts) == text, "run: make results"


def test_a_table_that_was_changed_by_hand_would_be_found(parts):
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert "| baseline |" in text
    wrong = text.replace("| baseline |", "| baseline, improved |")
    assert fill_blocks(wrong, parts) == text


def test_effects_are_plain_means_of_paired_differences(report):
    """Whatever rule judges them: mean over seeds of variant − baseline, by other code."""
    checked = 0
    for path in sorted((report.page.parent / "tables").glob("*.csv")):
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        if not rows or "difference" not in rows[0]:
            continue
        grid = next(each.evidence for each in report.grid_sections if _stem(each) == path.stem)
        for row in rows:
            tasks = [row["task"]] if row["task"] in grid.tasks else list(grid.tasks)
            if not row["difference"] or row["task"] == "tasks in the mean":
                continue
            gaps = []
            for task in tasks:
                cells = ((task, row["variant"]), (task, grid.baseline))
                ours, base = (grid.runs.get(each, {}) for each in cells)
                both = sorted(ours.keys() & base.keys())
                if not both:  # a grid on its way: this cell has not been computed
                    continue
                gaps.append(sum(_accuracy(ours[s]) - _accuracy(base[s]) for s in both) / len(both))
            assert float(row["difference"]) == pytest.approx(sum(gaps) / len(gaps), abs=1e-9)
            checked += 1
    assert checked > 300


def _stem(grid_section):
    return file_names([grid_section.evidence.name])[grid_section.evidence.name]


def _accuracy(record):
    diverged = record.result["status"] == "diverged"
    return record.result["trivial"]["majority"] if diverged else record.result["test"]["accuracy"]


def test_the_start_page_leads_with_what_was_laid_down_and_is_settled():
    text = (ROOT / "results" / "report" / "report.html").read_text(encoding="utf-8")
    leading = text[
        text.index('id="settled"') : text.index("Found without a protocol, in placement")
    ]
    assert 'href="grid-medium.html">medium</a>' in leading
    assert "Supported:" in leading
    assert "grid-noise.html" not in leading, "inconclusive: it stands among the questions"
    assert text.index('id="settled"') < text.index("After embedding helps most")
