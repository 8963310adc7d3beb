"""Lines over a common axis: gaps, logarithms, dashes, and names that find room."""

import itertools
import math
import re

import pytest

from depthpde.pages.figures.curves import Line, curves
from depthpde.pages.svg import LETTER, room_for
from pages.figures.reading import shapes, words


def test_curves_show_the_trivial_lines_even_far_from_the_data():
    drawn = curves([Line(name="a", x=[0, 1], y=[60, 61])], title="t", trivial={"majority": 10.0})
    assert "majority 10.0" in drawn
    line, curve = shapes(drawn, "line", "line-trivial")[0], shapes(drawn, "path", "line-ours")[0]
    assert float(line.get("y1")) > float(curve.get("d").split(",")[-1])


def test_names_of_trivial_lines_that_lie_close_take_both_ends():
    close = {"a": 28.1, "b": 25.7, "c": 10.0}
    drawn = curves([Line(name="x", x=[0, 1], y=[20, 31])], title="t", trivial=close)
    ends = {each.text: each.get("text-anchor") for each in shapes(drawn, "text", "warn")}
    assert ends["a 28.1"] != ends["b 25.7"]
    assert ends["b 25.7"] == ends["c 10.0"] == "end"


def test_names_of_many_close_lines_never_touch():
    """The five lines of Pathfinder: two at each end would meet in the middle of a small figure."""
    names = ("marks apart", "linear probe of the pixels", "majority", "second mark", "first mark")
    close = dict(zip(names, (57.2, 56.2, 50.0, 47.9, 47.0), strict=True))
    drawn = curves([Line(name="x", x=[0, 1], y=[45, 97])], title="t", trivial=close, width=280)
    boxes = []
    for each in shapes(drawn, "text", "warn"):
        wide = room_for([each.text], 11.0)
        start = float(each.get("x")) - (wide if each.get("text-anchor") == "end" else 0.0)
        boxes.append((start, start + wide, float(each.get("y"))))
    assert len(boxes) == 5
    for (a, b, y), (c, d, z) in itertools.combinations(boxes, 2):
        assert b <= c or d <= a or abs(y - z) >= 11.0


def test_a_line_that_is_flat_but_for_rounding_has_an_axis_of_different_numbers():
    drawn = curves([Line(name="x", x=[0, 1, 2], y=[0.2, 0.2 + 3e-17, 0.2 - 3e-17])], title="t")
    ticks = shapes(drawn, "text", "tick")
    numbers = [each.text for each in ticks if each.get("text-anchor") == "end"]
    assert len(numbers) == len(set(numbers)) > 1


def test_a_single_point_and_a_gap_are_drawn():
    drawn = curves([Line(name="a", x=[0, 1], y=[math.nan, 61.0])], title="t")
    assert len(shapes(drawn, "path", "line-ours")) == 1
    assert "nan" not in drawn


def test_a_curve_breaks_off_at_a_gap_and_goes_on_behind_it():
    drawn = curves([Line(name="a", x=range(5), y=[1, 2, math.nan, 3, 4])], title="t")
    paths = [each.get("d") for each in shapes(drawn, "path", "line-ours")]
    assert [len(each.split()) for each in paths] == [2, 2]


def test_equal_ratios_are_equally_far_apart_on_a_logarithmic_side():
    drawn = curves([Line(name="a", x=[1, 2, 3], y=[1e-6, 1e-3, 1.0])], title="t", log_y=True)
    points = re.findall(r"[\d.]+,([\d.]+)", shapes(drawn, "path", "line-ours")[0].get("d"))
    low, middle, high = map(float, points)
    assert low - middle == pytest.approx(middle - high, abs=0.02)
    assert low > high
    assert "1e−06" not in drawn


def test_what_has_no_logarithm_is_a_gap_on_either_axis():
    line = Line(name="a", x=[0, 1, 10], y=[5, -1, 5], dots=True)
    for chosen, left in (({"log_x": True}, 2), ({"log_y": True}, 2), ({}, 3)):
        assert len(shapes(curves([line], title="t", **chosen), "circle", "dot-ours")) == left
    both = curves([line], title="t", log_x=True, log_y=True, trivial={"zero": 0.0})
    assert len(shapes(both, "circle", "dot-ours")) == 1
    assert not shapes(both, "line", "line-trivial")


def test_several_baselines_differ_in_their_dashes():
    lines = [Line(name=str(k), x=[0, 1], y=[k, k], role="baseline") for k in range(3)]
    drawn = curves(lines, title="t")
    kinds = {each.get("class") for each in shapes(drawn, "path", "line-")}
    assert kinds == {"line-baseline", "line-baseline-2", "line-baseline-3"}


def test_a_mark_says_its_number():
    drawn = curves([Line(name="a", x=[3], y=[0.12345], dots=True)], title="t")
    assert "<title>a, 3: 0.123</title>" in drawn


def test_wide_numbers_at_either_end_have_room():
    drawn = curves([Line(name="a", x=[0, 200000], y=[-0.000125, 0.0])], title="t", width=360)
    for each in shapes(drawn, "text", "tick"):
        wide = LETTER * 11 * len(each.text)
        x, anchor = float(each.get("x")), each.get("text-anchor")
        left = x - wide * {"end": 1.0, "middle": 0.5, None: 0.0}[anchor]
        assert left >= 0
        assert left + wide <= 360


def test_one_curve_needs_no_legend_and_many_get_rows_of_it():
    one = Line(name="alone", x=[0, 1], y=[0, 1])
    assert "alone" not in words(curves([one], title="t"))
    names = [f"a rather long name {k}" for k in range(4)]
    drawn = curves([Line(name=name, x=[0, 1], y=[0, 1]) for name in names], title="t")
    texts = [each for each in shapes(drawn, "text", "tick") if each.text in names]
    heights = sorted({float(each.get("y")) for each in texts})
    assert len(heights) > 1
    assert all(b - a == 16 for a, b in itertools.pairwise(heights))


def test_a_band_leaves_out_what_is_no_number():
    line = Line(name="a", x=[0, 1, 2], y=[1, 1, 1], low=[0, math.nan, 0], high=[2, 2, 2])
    band = shapes(curves([line], title="t"), "path", "band-ours")[0]
    assert len(band.get("d").split()) == 4


def test_a_range_that_is_given_is_kept_and_curves_stay_inside():
    drawn = curves([Line(name="a", x=[0, 1], y=[0, 99])], title="t", y_range=(0.0, 1.0))
    heights = [
        float(y) for y in re.findall(r",([\d.]+)", shapes(drawn, "path", "ours")[0].get("d"))
    ]
    rules = [float(each.get("y1")) for each in shapes(drawn, "line", "grid")]
    assert min(heights) >= min(rules) - 0.01
