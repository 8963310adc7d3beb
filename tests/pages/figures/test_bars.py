"""Bars side by side: heights, logarithms, a legend that finds room."""

import pytest

from depthpde.pages.figures.bars import bars
from pages.figures.reading import shapes, words

BANDS = ["low", "high"]


def heights(drawn, kind):
    found = [each for each in shapes(drawn, "rect", kind) if float(each.get("height")) != 9]
    return [float(each.get("height")) for each in found]


def test_heights_are_in_proportion():
    one, two = heights(bars(BANDS, {"a": [1.0, 3.0]}, title="t"), "mark-control")
    assert two == pytest.approx(3 * one, rel=1e-3)


def test_equal_ratios_are_equal_steps_on_a_logarithmic_side():
    drawn = bars(["a", "b", "c"], {"x": [1e-6, 1e-3, 1.0]}, title="t", log=True)
    low, middle, high = heights(drawn, "mark-control")
    assert high - middle == pytest.approx(middle - low, abs=0.02)


def test_what_has_no_logarithm_has_no_bar():
    assert len(heights(bars(BANDS, {"x": [0.0, 1.0]}, title="t", log=True), "mark-control")) == 1


def test_series_are_told_by_open_full_and_grey():
    drawn = bars(BANDS, {"was": [1, 1], "is": [1, 1], "random": [1, 1]}, title="t")
    for kind in ("mark-control", "mark-ours", "mark-baseline"):
        assert len(heights(drawn, kind)) == 2


def test_names_that_need_room_take_another_row_and_the_frame_moves_down():
    short = bars(BANDS, {"a": [1, 1], "b": [1, 1]}, title="t", width=300)
    names = ["a name that needs much room", "another that needs as much"]
    long = bars(BANDS, {name: [1, 1] for name in names}, title="t", width=300)
    rows = {float(each.get("y")) for each in shapes(long, "text", "tick") if each.text in names}
    assert len(rows) == 2
    assert max(heights(long, "mark-ours")) < max(heights(short, "mark-ours"))


def test_a_label_of_the_side_and_the_names_do_not_touch():
    drawn = bars(BANDS, {"was": [1, 1]}, title="t", y_label="energy / energy before")
    label = next(each for each in shapes(drawn, "text", "tick") if "before" in each.text)
    name = next(each for each in shapes(drawn, "text", "tick") if each.text == "was")
    assert float(label.get("x")) + 6 * len(label.text) < float(name.get("x"))
    assert "energy / energy before" in words(drawn)
