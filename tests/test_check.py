"""`make check` chooses the tests of what changed."""

from __future__ import annotations

from test_mirror import ELSEWHERE
from test_site import tool

check = tool("check")


def test_a_source_leads_to_its_own_test_or_to_the_place_that_does_its_work():
    found = check.tests_of(
        ["src/depthpde/layers/diffusion.py", "src/depthpde/data/drawing.py"], ELSEWHERE
    )
    assert "tests/layers/test_diffusion.py" in found
    assert "tests/data/test_counter.py" in found


def test_changed_tests_and_pages_are_run_and_what_is_gone_is_not():
    found = check.tests_of(["tests/test_seeds.py", "docs/data.md", "src/depthpde/no/where.py"], {})
    assert found == sorted([*check.ALWAYS, *check.WRITTEN, "tests/test_seeds.py"])


def test_nothing_changed_still_checks_the_map():
    assert check.tests_of([], ELSEWHERE) == sorted(check.ALWAYS)
