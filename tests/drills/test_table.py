"""The table of the drills: rows of one name are one, a failure shows, the page keeps the rest."""

from __future__ import annotations

import pytest

from drills.table import Row, fill, render


def test_rows_of_one_name_are_one_and_a_failure_shows(tmp_path):
    rows = [Row("kills", 3, "held"), Row("kills", 4, "held"), Row("`a`", 0, "failed", fine=False)]
    text = render(rows, "made today")
    assert "| kills | 7 | ✓ held |" in text
    assert "| `a` | 0 | ✗ failed |" in text
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- drills -->\nold\n<!-- /drills -->\nafter\n")
    fill(page, text)
    assert page.read_text().startswith("before\n<!-- drills -->\nmade today")
    assert page.read_text().endswith("<!-- /drills -->\nafter\n")
    assert "old" not in page.read_text()


def test_a_page_without_marks_is_refused(tmp_path):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="must have the marks"):
        fill(tmp_path / "page.md", "text")
