"""What stands between two marks is made; everything else is left to the writer."""

from __future__ import annotations

import pytest

from depthpde.report.fill import fill, fill_pages

PAGE = """# Title
before
<!-- depthpde: table placement -->
old
<!-- /depthpde -->
after <!-- depthpde: is not a mark here
"""


def test_only_what_is_marked_changes():
    new = fill(PAGE, {"table placement": "| a |\n"})
    assert new == PAGE.replace("old", "| a |")
    assert fill(new, {"table placement": "| a |\n"}) == new


def test_pages_that_change_are_told(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(PAGE)
    assert fill_pages([page], {"table placement": "| a |"}) == [page]
    assert fill_pages([page], {"table placement": "| a |"}) == []


def test_refuses_a_mark_that_nothing_belongs_to():
    with pytest.raises(ValueError, match="did you mean 'table placement'"):
        fill(PAGE.replace("table placement", "table placment"), {"table placement": ""})
