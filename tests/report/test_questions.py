"""Questions of a report: what chooses rates and opens gates stands beneath its experiment."""

from __future__ import annotations

import json

import pytest

from depthpde.papers.registry import EXPERIMENTS
from depthpde.report.page import write_report
from depthpde.report.questions import Link, ReportQuestion, contents_of
from report.test_page import Reader


@pytest.fixture
def staged(results):
    """A folder whose grid has two stages before it, and another that has only begun."""
    first = json.loads((results / "grids" / "placement.json").read_text())
    for name in ("placement.tuning", "pathfinder.tuning", "pathfinder.gates"):
        cells = [*first["cells"], first["cells"][0] | {"seed": 99, "run": "0" * 16}]
        grid = first | {"name": name, "question": f"About {name}?", "cells": cells}
        (results / "grids" / f"{name}.json").write_text(json.dumps(grid))
    return results


def test_stages_stand_beneath_their_experiment_and_count_their_runs(staged, tmp_path):
    text = write_report(staged, tmp_path).read_text()
    listed = text.partition('<ul class="questions">')[2].partition("</ul>")[0].split("</li>")
    placement, pathfinder = (each for each in listed if each.strip())
    assert 'href="grid-placement.html"' in placement
    assert 'href="grid-placement-tuning.html"' in placement
    assert EXPERIMENTS["pathfinder"].question in pathfinder
    assert "No test seed has run" in pathfinder
    assert 'href="grid-pathfinder-gates.html"' in pathfinder
    assert "60 of 61 runs" in pathfinder
    for page in tmp_path.glob("*.html"):
        assert Reader(page.read_text()).open == []


def test_a_stage_is_never_given_a_verdict(staged, tmp_path):
    write_report(staged, tmp_path)
    page = (tmp_path / "grid-pathfinder-tuning.html").read_text()
    verdict = page.partition('<ul class="verdict">')[2].partition("</ul>")[0]
    assert "No result by itself" in verdict
    assert "60 of 61 runs have a result" in verdict
    assert "helps" not in verdict
    assert 'aria-current="page">tuning</a>' in page


def test_one_page_names_the_stages_beneath_too(staged, tmp_path):
    read = Reader(write_report(staged, tmp_path, single_file=True).read_text())
    assert read.open == []
    assert all(link[1:] in read.ids for link in read.links if link.startswith("#"))


def test_what_has_no_page_has_no_link():
    stage = ReportQuestion("tuning", "?", "grid-a-tuning.html", None)
    assert contents_of([ReportQuestion("a", "?", "", None, (stage,))]) == [
        Link("a", "", (Link("tuning", "grid-a-tuning.html"),))
    ]
