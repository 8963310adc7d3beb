"""Learned ratios: every feature a tick, one row a place."""

import math

from depthpde.pages.figures.ratios import ratios
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
