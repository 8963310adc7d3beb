"""The page says what was found, and claims nothing where nothing was found."""

from dataclasses import replace

import pytest

from depthpde.comparison.entrant import Entrant
from depthpde.comparison.report import ComparisonReport
from depthpde.demo.look import PretrainedLook
from depthpde.demo.page import headline, render_page, title
from depthpde.demo.text import CONTROL, OURS, PLAIN
from depthpde.records.learning_curves import join
from depthpde.records.scores import Endpoint


def report(gain, seeds=7, labels=(PLAIN, OURS, CONTROL)):
    shifts = dict(zip((PLAIN, OURS, CONTROL), (0.0, gain, gain / 2), strict=True))
    entrants = [
        Entrant(
            label=label,
            scores={s: 2.2 + 0.01 * s - shifts[label] * (1 + 0.02 * s) for s in range(seeds)},
            curve=join([[(10, 3.0), (20, 2.2)]]),
            parameters=1000 + 128 * k,
            ratios={"block 1, between blocks": [0.2, 0.3]} if label == OURS else {},
        )
        for k, label in enumerate(labels)
    ]
    return ComparisonReport(task="text", endpoint=Endpoint.LOSS, entrants=entrants)


@pytest.mark.parametrize(("gain", "finding"), [(0.1, True), (-0.1, False), (0.0, False)])
def test_the_title_is_a_finding_only_where_it_was_found(gain, finding):
    assert title(report(gain)).startswith("A small GPT learns faster") is finding


def test_one_seed_carries_no_verdict():
    output = headline(report(0.1, seeds=1))
    assert "1 of 1 pair (one pair carries no verdict)" in output
    assert "below its control" in output


def test_missing_runs_are_said():
    assert "goes on" in headline(report(0.1, labels=(PLAIN, OURS)))


def test_a_model_without_a_loss_is_no_number_in_the_headline():
    """It ended as a loss of nan."""
    found = report(0.1)
    plain, ours, control = found.entrants
    lost = replace(found, entrants=[plain, replace(ours, scores={}, diverged=7), control])
    assert headline(lost).startswith("some runs have no result")
    assert "nan" not in render_page(lost, PretrainedLook(missing="not here"))


def test_the_page_opens_with_picture_verdict_and_what_next():
    page = render_page(report(0.1), PretrainedLook(missing="not here: pip install x"))
    assert len(page) < 1_000_000
    assert page.index("better") < page.index("<svg") < page.index("What to do next")
    assert "pip install x" in page
    assert page.count("<svg") == 3
