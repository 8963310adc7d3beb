from __future__ import annotations

import os
from pathlib import Path

import pytest

from depthpde.records.index.index import Index
from depthpde.report.page import write_report
from depthpde.web.reports import SANDBOX, WrittenReport
from web.conftest import serving


def test_a_written_report_is_linked_and_sent_so_that_nothing_in_it_runs(results: Path) -> None:
    write_report(results)
    with serving(results) as site:
        _, _, board = site.get("/")
        assert 'href="/report/report.html"' in board
        assert 'href="/report/grid-placement.html"' in board
        status, headers, page = site.get("/report/report.html")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert headers["content-security-policy"] == SANDBOX
        assert "allow-scripts" not in SANDBOX
        assert page == (results / "report" / "report.html").read_text()
        status, headers, _ = site.get("/report/tables/placement.csv")
        assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert WrittenReport(Index(results)).links()["Report"] == "/report/report.html"


def test_without_a_report_there_is_no_link(results: Path) -> None:
    assert WrittenReport(Index(results)).links() == {}


@pytest.mark.parametrize(
    "name",
    ["../grids/placement.json", "..", "", ".hidden.html", "a/b/c.html", "x.js", "\0.html",
     "tables/../../x.html", "tables", "link.html"],
)  # fmt: skip
def test_nothing_but_a_file_of_the_report_is_sent(results: Path, name: str) -> None:
    write_report(results)
    (results / "secret.html").write_text("secret")
    os.symlink(results / "secret.html", results / "report" / "link.html")
    (results / "report" / ".hidden.html").write_text("hidden")
    assert WrittenReport(Index(results)).read(name) is None


def test_a_file_that_is_too_large_is_not_sent(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(results)
    monkeypatch.setattr("depthpde.web.reports.LARGEST", 10)
    assert WrittenReport(Index(results)).read("report.html") is None
