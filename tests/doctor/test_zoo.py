"""The doctor before the validation zoo: seeds and sizes that no threshold has seen."""

import re
from pathlib import Path

import pytest

from depthpde.doctor.diagnosis import CORE
from doctor.zoo import BROKEN, CALIBRATION, HEALTHY, VALIDATION, confusion_table, examine

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"


@pytest.fixture(scope="module")
def findings():
    return examine()


@pytest.fixture(scope="module")
def some():
    """A third of the zoo, other sizes for each animal in turn; `make drills` sees all of it."""
    return examine(every=3)


def test_of_a_third_of_the_zoo_nearly_all_are_right(some):
    assert len(some) >= 40
    assert {each.truth for each in some} == {None, *CORE}
    wrong = [(each.animal, each.truth, each.ill) for each in some if not each.right]
    assert len(wrong) <= 0.05 * len(some), wrong


def test_no_threshold_was_tuned_on_what_it_is_judged_by():
    seeds = [{c.seed for c in each} for each in (CALIBRATION, VALIDATION)]
    sizes = [{(c.dim, c.blocks, c.length) for c in each} for each in (CALIBRATION, VALIDATION)]
    assert not seeds[0] & seeds[1]
    assert not sizes[0] & sizes[1]


def test_every_illness_is_in_the_zoo_more_than_once():
    kinds = [animal.condition for animal in BROKEN]
    assert all(kinds.count(condition) >= 2 for condition in CORE)
    assert len(HEALTHY) >= 20


@pytest.mark.drill
def test_no_alarm_on_the_healthy(findings):
    healthy = [each for each in findings if each.truth is None]
    wrong = [(each.animal, each.ill) for each in healthy if not each.right]
    assert len(healthy) >= 60
    assert len(wrong) <= 0.05 * len(healthy), wrong


@pytest.mark.drill
def test_the_right_illness_is_named(findings):
    broken = [each for each in findings if each.truth is not None]
    wrong = [(each.animal, each.truth, each.ill) for each in broken if not each.right]
    assert len(broken) >= 60
    assert len(wrong) <= 0.05 * len(broken), wrong


@pytest.mark.drill
def test_the_page_shows_this_very_table(findings):
    written = re.search(r"<!-- confusion -->\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert written is not None
    page, ours = judged(written.group(1)), judged(confusion_table(findings))
    if not any(each.animal.startswith("MiniLM") for each in findings):
        del page["healthy"], ours["healthy"]  # one fewer where its weights are not installed
    assert page == ours


def judged(table):
    """What was broken → how many, how many right, and the count in bold."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {row[0]: (row[1], row[2], re.findall(r"\*\*\d+\*\*", "".join(row))) for row in rows}
