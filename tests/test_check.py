"""`make check` chooses the tests of what changed."""

from __future__ import annotations

import time

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


def test_what_is_over_time_is_ended_and_names_the_command_that_does_the_rest(capfd, monkeypatch):
    monkeypatch.setattr(check, "ROOT", check.ROOT / "tools")
    began = time.monotonic()
    step = check.start(["timeit", "-n", "1", "-r", "1", "-s", "import time", "time.sleep(60)"])
    assert check.finish(step, began + 0.5, "make test") == 0
    assert time.monotonic() - began < 30
    assert step.returncode != 0
    assert "make test" in capfd.readouterr().out


def test_a_step_that_fails_in_time_gives_its_code():
    assert check.finish(check.start(["no_such_module"]), time.monotonic() + 60, "make test") == 1
