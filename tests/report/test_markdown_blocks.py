"""What stands between two marks is made; everything else is left to the writer."""

from __future__ import annotations

import pytest

from depthpde.report.markdown_blocks import fill_blocks, fill_pages, parts_of
from depthpde.report.page import make_report

PAGE = """# Title
before
<!-- depthpde: table placement -->
old
<!-- /depthpde -->
after <!-- depthpde: is not a mark here -->
"""


def test_only_what_is_marked_changes():
    new = fill_blocks(PAGE, {"table placement": "| a |\n"})
    assert new == PAGE.replace("old", "| a |")
    assert fill_blocks(new, {"table placement": "| a |\n"}) == new


def test_pages_that_change_are_told(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(PAGE)
    assert fill_pages([page], {"table placement": "| a |"}) == [page]
    assert fill_pages([page], {"table placement": "| a |"}) == []


def test_refuses_a_mark_that_nothing_belongs_to():
    with pytest.raises(ValueError, match="did you mean 'table placement'"):
        fill_blocks(PAGE.replace("table placement", "table placment"), {"table placement": ""})


@pytest.mark.parametrize(
    "broken",
    [
        PAGE.replace("<!-- /depthpde -->\n", ""),
        PAGE.replace(
            "<!-- /depthpde -->\n", "prose\n<!-- depthpde: rows b -->\n<!-- /depthpde -->\n"
        ),
        PAGE.replace("<!-- depthpde: table", "<!-- depthpde : table"),
        PAGE.replace("old\n", "<!-- /depthpde -->\n"),
        PAGE.replace("<!-- depthpde: table placement -->\n", ""),
    ],
)
def test_marks_that_are_no_pair_lose_no_prose(tmp_path, broken):
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text(PAGE)
    bad.write_text(broken)
    with pytest.raises(ValueError, match=r"bad\.md: marks must come by twos"):
        fill_pages([good, bad], {"table placement": "| a |", "rows b": ""})
    assert (good.read_text(), bad.read_text()) == (PAGE, broken)


def test_a_page_without_marks_is_not_one_to_fill():
    with pytest.raises(ValueError, match="must hold a mark such as"):
        fill_blocks("# Title\n", {})


def test_the_parts_are_named_after_grids_and_experiments(shared_results):
    report = make_report([shared_results], shared_results.parent / "page")
    parts = parts_of(report.grid_sections, report.results.findings)
    assert {"table placement", "rows placement", "claims placement", "beside placement"} <= set(
        parts
    )
    beside = parts["beside placement"]
    assert "| variant | ratio |" in beside
    assert "| --- | --: |" in beside
    assert "\n| after embedding | " in beside
