"""Differences with their intervals: right is better, sure is bold, wild is cut."""

import re

import pytest

from depthpde.pages.figures.forest import Estimate, forest, forests
from pages.figures.reading import shapes, words


def estimate(mean=1.0, **printed):
    return Estimate(label=printed.pop("label", "v"), mean=mean, **printed)


def test_a_better_variant_stands_right_of_a_worse_one():
    drawn = forest([estimate(2.0), estimate(-1.0, label="w"), estimate(0.0, label="z")])
    right, left, zero = (float(each.get("cx")) for each in shapes(drawn, "circle", "mark-ours"))
    axis = float(shapes(drawn, "line", "zero")[0].get("x1"))
    assert left < zero < right
    assert zero == pytest.approx(axis, abs=0.02)


def test_ours_controls_and_others_are_told_apart():
    rows = [estimate(1.0, label=role, role=role) for role in ("ours", "control", "other")]
    drawn = forest(rows)
    assert len(shapes(drawn, "circle", "mark-ours")) == 1
    assert len(shapes(drawn, "rect", "mark-control")) == 1
    assert len(shapes(drawn, "circle", "mark-other")) == 1


def test_one_wild_interval_is_cut_with_an_arrow_and_does_not_flatten_the_others():
    drawn = forest([estimate(1.0, low=0.8, high=1.2), estimate(0.5, label="w", low=-90, high=91)])
    assert len(shapes(drawn, "path", "mark-ours")) == 2
    ends = shapes(drawn, "line", "whisker-ours")[0]
    assert float(ends.get("x2")) - float(ends.get("x1")) > 10


def test_a_pair_beyond_the_axis_is_told_by_a_chevron_on_its_side():
    def seeds(*points):
        drawn = forest([estimate(1.0, low=0.5, high=1.5, points=points)])
        return re.search(r'class="seed" d="([^"]*)"|d="([^"]*)" class="seed"', drawn)[0]

    assert seeds(0.6, 1.2).count("v3") == 2
    assert "l" not in seeds(0.6, 1.2).replace("class", "")
    left, right = seeds(0.6, -20.0, -30.0), seeds(0.6, 20.0)
    assert "l-3,2.5l3,2.5" in left, "one for all on that side"
    assert left.count("l3") == 1
    assert "l3,2.5l-3,2.5" in right
    assert left.count("v3") == right.count("v3") == 1


def test_the_axis_ends_left_of_the_longest_numbers():
    def ends(**printed):
        drawn = forest([estimate(**printed), estimate(low=0.5, high=1.5)])
        return max(float(x) for x in re.findall(r'<line[^>]* x2="([\d.]+)"', drawn))

    short, long = ends(mean=2.3, low=1.7, high=2.9), ends(mean=-27.9, low=-132.7, high=-23.2)
    assert long < short - 20


def test_a_task_that_moves_much_does_not_flatten_the_others():
    calm = [estimate(1.0, low=0.5, high=1.5)]
    wild = [estimate(-40.0, low=-80.0, high=0.0)]

    def width(drawn):
        whisker = shapes(drawn, "line", "whisker-ours")[0]
        return float(whisker.get("x2")) - float(whisker.get("x1"))

    assert width(forests({"calm": calm, "wild": wild}, ["a"])) == pytest.approx(
        width(forests({"calm": calm, "too": calm}, ["a"]))
    )


def test_what_is_sure_is_bold_and_one_seed_says_so():
    drawn = forest([estimate(1.0, low=0.5, high=1.5), estimate(2.0, label="w")])
    assert [each.text for each in shapes(drawn, "text", "strong")] == ["v", "+1.0 [+0.5, +1.5]"]
    assert "+2.0 [no interval]" in words(drawn)


def test_an_interval_with_an_end_at_zero_is_not_sure():
    assert not estimate(1.0, low=0.0, high=2.0).is_clear
    assert estimate(-1.0, low=-2.0, high=-0.1).is_clear


def test_a_row_leads_to_its_runs_and_says_n():
    drawn = forest([estimate(1.0, n=6, href="#runs")])
    assert 'href="#runs"' in drawn
    assert "n = 6</title>" in drawn


def test_a_task_without_an_estimate_leaves_its_row_empty():
    drawn = forests({"a": [estimate(1.0), None], "b": [None, estimate(2.0)]}, ["x", "y"])
    heights = sorted(float(each.get("cy")) for each in shapes(drawn, "circle", "mark-ours"))
    assert len(heights) == 2
    assert heights[1] - heights[0] == 25.0
