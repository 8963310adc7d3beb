"""Differences as tinted squares: the number in each, a frame where it is sure."""

import itertools

from depthpde.pages.figures.heatmap import DEEPEST, Tint, heatmap
from pages.figures.reading import shapes, words


def test_a_framed_square_is_one_whose_interval_leaves_out_zero():
    drawn = heatmap(
        ["r"], ["a", "b"],
        {("r", "a"): Tint(value=2, text="+2", strong=True), ("r", "b"): Tint(value=-1, text="−1")},
    )  # fmt: skip
    assert len(shapes(drawn, "rect", "clear")) == 1
    up, down = shapes(drawn, "rect", "up")[0], shapes(drawn, "rect", "down")[0]
    assert float(up.get("fill-opacity")) == 2 * float(down.get("fill-opacity"))


def test_a_missing_square_is_a_dash():
    drawn = heatmap(["r"], ["a", "b"], {("r", "a"): Tint(value=0.0, text="±0.0")})
    assert words(drawn) == ["a", "b", "r", "±0.0", "–"]
    assert len(shapes(drawn, "rect", "none")) == 1


def test_the_deepest_tint_is_that_of_the_largest_number_or_of_the_one_given():
    cells = {("r", "a"): Tint(value=0.5, text=".5")}

    def depth(**chosen):
        drawn = heatmap(["r"], ["a"], cells, **chosen)
        return float(shapes(drawn, "rect", "up")[0].get("fill-opacity"))

    assert depth() == DEEPEST
    assert depth(largest=1.0) == DEEPEST / 2


def test_squares_are_as_wide_as_asked_and_stand_side_by_side():
    cells = {("r", each): Tint(value=1.0, text="1") for each in "abc"}
    squares = shapes(heatmap(["r"], "abc", cells, cell=30.0), "rect", "up")
    lefts = [float(each.get("x")) for each in squares]
    assert [round(b - a, 6) for a, b in itertools.pairwise(lefts)] == [30.0, 30.0]
    assert all(float(each.get("width")) < 30 for each in squares)


def test_rows_may_be_written_otherwise_than_they_are_named():
    drawn = heatmap(["after_ffn"], ["a"], {}, labels={"after_ffn": "after ffn"})
    assert "after ffn" in words(drawn)
    assert "after_ffn" not in words(drawn)
