"""The table of the drills: rows of one name are one, a failure shows, other files keep theirs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from drills.table import Row, fill, merge, read

ROOT = Path(__file__).parents[2]
DAY, OLDER = "2026-11-17", "2026-11-02"
KILLS = [Row("kills", 3, "held", "a.py", DAY), Row("kills", 4, "held", "a.py", DAY)]
FAILED = Row("`t`", 0, "failed", "b.py", DAY, fine=False)


def test_rows_of_one_name_are_one_and_a_failure_shows(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- drills -->\n<!-- /drills -->\nafter\n")
    fill(page, [*KILLS, FAILED], {"a.py", "b.py"}, "made today")
    assert "| kills | 7 | ✓ held | `a.py` | 2026-11-17 |" in page.read_text()
    assert "| `t` | 0 | ✗ failed | `b.py` | 2026-11-17 |" in page.read_text()
    assert page.read_text().startswith("before\n<!-- drills -->\nmade today")
    assert page.read_text().endswith("<!-- /drills -->\nafter\n")


def test_a_run_replaces_the_rows_of_its_files_and_keeps_the_others_with_their_day(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- drills -->\n<!-- /drills -->\n")
    old = [Row("kills", 9, "held", "a.py", OLDER), Row("disks", 1_234, "held", "c.py", OLDER)]
    fill(page, old, {"a.py", "c.py"}, "first")
    fill(page, [*KILLS, FAILED], {"a.py", "b.py"}, "second")
    assert read(page) == [Row("kills", 7, "held", "a.py", DAY), FAILED, old[1]]
    assert "first" not in page.read_text()
    fill(page, [], {"b.py"}, "third")
    assert FAILED not in read(page), "its file ran again, and nothing failed"


def test_one_failure_among_rows_of_one_name_shows():
    rows = [KILLS[0], Row("kills", 1, "lost a bit", "a.py", DAY, fine=False)]
    assert merge([], rows, {"a.py"}) == [
        Row("kills", 4, "held; lost a bit", "a.py", DAY, fine=False)
    ]


def test_no_reason_breaks_the_table(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- drills -->\n<!-- /drills -->\n")
    fill(page, [Row("a | b", 1, "not tried\nhere", "a.py", DAY)], {"a.py"}, "about")
    assert read(page) == [Row("a / b", 1, "not tried here", "a.py", DAY)]


def test_a_page_without_marks_and_a_row_of_another_form_are_refused(tmp_path):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="must have the marks"):
        fill(tmp_path / "page.md", [], set(), "text")
    with pytest.raises(ValueError, match="five cells"):
        Row.parse("| kills | 7 | held |")


def test_the_page_has_a_row_of_every_drill_and_names_no_test_that_is_not_there():
    page = (ROOT / "docs/reliability.md").read_text()
    tests = {path: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    tallied = [path for path, text in tests.items() if re.search(r"^ +tally\(", text, flags=re.M)]
    drills = {str(path.relative_to(ROOT / "tests")) for path in tallied}
    assert len(drills) >= 12
    assert drills <= {row.by for row in read(ROOT / "docs/reliability.md")}
    named = set(re.findall(r"`(?:tests/)?([\w/]*test_\w+\.py)`", page))
    assert {each for each in named if not any(str(path).endswith(each) for path in tests)} == set()
    functions = set(re.findall(r"`(test_\w+)`", page))
    everything = "\n".join(tests.values())
    assert {each for each in functions if f"def {each}(" not in everything} == set()


def test_the_command_of_make_drills_is_one_that_pytest_takes(tmp_path):
    printed = subprocess.run(["make", "-n", "drills"], cwd=ROOT, capture_output=True, text=True)
    (line,) = (each for each in printed.stdout.splitlines() if "-m pytest" in each)
    words = shlex.split(line)
    words = words[words.index("-m") :]
    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs" / "reliability.md").read_text())
    words = [each.replace("docs/reliability.md", str(page)) for each in words]
    words[words.index("--numprocesses") + 1] = "0"
    assert str(page) in " ".join(words)
    assert words[-1] == "tests"
    words[-1] = "tests/drills"  # a part, in seconds
    done = subprocess.run(
        [sys.executable, *words, "--collect-only"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    assert done.stdout.count("::test_") >= 10
    assert page.read_text() == (ROOT / "docs" / "reliability.md").read_text()
