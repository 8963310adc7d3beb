"""Learned ratios: every feature a tick, one row a place."""

import math
import re

from depthpde.pages.figures.ratios import MOST_TICKS, ratios
from pages.figures.reading import shapes, words


def test_a_rug_has_one_tick_for_each_feature():
    drawn = ratios({"after embedding": [0.1, 0.2, 0.05]}, bound=0.25)
    assert shapes(drawn, "path", "rug-ours")[0].get("d").count("M") == 3
    assert "0.117" in drawn


def test_a_place_without_a_number_has_no_row():
    drawn = ratios({"a": [math.nan], "b": [0.1]}, bound=0.25)
    assert "a" not in words(drawn)
    assert "b" in words(drawn)


def test_the_start_is_marked_only_inside_the_axis():
    assert shapes(ratios({"a": [0.1]}, bound=0.25, start=0.2), "line", "zero")
    assert not shapes(ratios({"a": [0.1]}, bound=0.25, start=0.9), "line", "zero")


def test_the_bound_ends_the_axis():
    near = shapes(ratios({"a": [0.1]}, bound=0.25), "circle", "mark-ours")[0]
    far = shapes(ratios({"a": [0.1]}, bound=1.0), "circle", "mark-ours")[0]
    assert float(near.get("cx")) > float(far.get("cx"))


def test_many_ticks_are_fainter():
    def opacity(count):
        rug = shapes(ratios({"a": [0.1] * count}), "path", "rug-ours")[0]
        return float(rug.get("stroke-opacity"))

    assert opacity(10) > opacity(100) > opacity(1000)


def test_thousands_of_ticks_are_thinned_evenly_and_keep_their_ends():
    values = [0.25 * k / 9999 for k in range(10_000)]
    drawn = ratios({"block 1": values}, bound=0.25)
    few = ratios({"block 1": [0.0, 0.25]}, bound=0.25)
    ticks = [float(each) for each in re.findall(r"M([\d.]+),[\d.]+v16", drawn)]
    ends = [float(each) for each in re.findall(r"M([\d.]+),[\d.]+v16", few)]
    assert len(ticks) == MOST_TICKS
    assert [ticks[0], ticks[-1]] == ends
    assert "over 10000 values" in drawn
