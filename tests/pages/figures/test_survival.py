"""Survival curves fall at escapes, are level between, and end where training does."""

from depthpde.pages.figures.survival import steps, survival
from depthpde.records.statistics.survival import EscapeTime, kaplan_meier

RUNS = [
    EscapeTime(100, True),
    EscapeTime(300, True),
    EscapeTime(600, False),
    EscapeTime(600, False),
]


def test_a_curve_falls_by_a_step_at_each_escape():
    x, y = steps(kaplan_meier(RUNS), 600)
    assert x == [0.0, 100.0, 100.0, 300.0, 300.0, 600.0]
    assert y == [1.0, 1.0, 0.75, 0.75, 0.5, 0.5]


def test_where_nobody_left_the_line_is_level():
    assert steps(kaplan_meier(RUNS[2:]), 600) == ([0.0, 600.0], [1.0, 1.0])


def test_every_variant_is_named_and_says_when_half_had_left():
    drawn = survival(
        {"baseline": kaplan_meier(RUNS), "ours": kaplan_meier(RUNS[2:])},
        600,
        roles={"baseline": "baseline"},
        title="Pathfinder",
    )
    assert "baseline: half left by update 300" in drawn
    assert "ours: fewer than half left" in drawn
    assert "line-baseline" in drawn
    assert "line-ours" in drawn
