"""What holds for every figure: it is well-formed, says itself in words, and takes any name."""

import math
import re
import xml.etree.ElementTree as ET

import pytest

from depthpde.pages.figures.bars import bars
from depthpde.pages.figures.curves import Line, curves
from depthpde.pages.figures.diagram import Effect, diagram
from depthpde.pages.figures.forest import Estimate, forest, forests
from depthpde.pages.figures.heatmap import Tint, heatmap
from depthpde.pages.figures.ratios import ratios
from depthpde.pages.style import FIGURE
from depthpde.records.run_model import POSITIONS

BAD = "<script>alert(1)</script>\x00&\"'"


def estimate(mean=1.0, **told):
    return Estimate(label=told.pop("label", "v"), mean=mean, **told)


FIGURES = {
    "forest": lambda name: forest([estimate(label=name, low=-1, high=2, title=name, href="#x")]),
    "forests": lambda name: forests({name: [estimate(label=name), None]}, [name, "other"]),
    "heatmap": lambda name: heatmap(
        [name], [name, "b"], {(name, name): Tint(value=-1, text=name, title=name, strong=True)}
    ),
    "curves": lambda name: curves(
        [
            Line(name=name, x=[1, 2], y=[3, 4], low=[2, 3], high=[4, 5], title=name),
            Line(name="b", x=[1], y=[math.nan]),
        ],
        title=name,
        trivial={name: 2.0},
    ),
    "ratios": lambda name: ratios({name: [0.1, math.nan, 0.2]}, bound=0.25, start=0.1),
    "bars": lambda name: bars([name, "b"], {name: [1, 2], "after": [1, 0]}, title=name),
    "diagram": lambda name: diagram({"in_heads": Effect(mean=1.0, title=name, href=f"#{name}")}),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_a_hostile_name_is_text_and_the_figure_is_well_formed(draw):
    drawn = draw(BAD)
    root = ET.fromstring(drawn)
    assert not [each for each in root.iter() if "script" in each.tag]
    assert "<script" not in drawn


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_every_figure_says_itself_in_words_and_carries_no_style_or_colour(draw):
    drawn = draw("name")
    root = ET.fromstring(drawn)
    assert root.get("role") in ("img", "group")
    assert len(root.get("aria-label")) > 20
    assert "style=" not in drawn
    assert "#fff" not in drawn
    assert not re.search(r'(fill|stroke)="', drawn)


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_every_class_of_a_figure_has_a_rule(draw):
    used = {
        word for names in re.findall(r'class="([^"]+)"', draw("name")) for word in names.split()
    }
    assert used <= {*re.findall(r"\.([a-z-]+)", FIGURE)}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_the_same_numbers_give_the_same_bytes(draw):
    assert draw("name") == draw("name")


@pytest.mark.parametrize(
    "drawn",
    [forest([]), forests({}, []), heatmap([], [], {}), curves([], title="x"), ratios({}),
     bars([], {}, title="x"), diagram({})],
)  # fmt: skip
def test_nothing_to_draw_is_still_a_figure(drawn):
    ET.fromstring(drawn)
    assert "nan" not in drawn


def shapes(drawn, tag, kind):
    root = ET.fromstring(drawn)
    found = [each for each in root.iter() if each.tag.endswith("}" + tag)]
    return [each for each in found if kind in (each.get("class") or "")]


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
    def ends(**told):
        drawn = forest([estimate(**told), estimate(low=0.5, high=1.5)])
        return max(float(x) for x in re.findall(r'<line[^>]* x2="([\d.]+)"', drawn))

    short, long = ends(mean=2.3, low=1.7, high=2.9), ends(mean=-27.9, low=-132.7, high=-23.2)
    assert long < short - 20


def test_a_framed_square_is_one_whose_interval_leaves_out_zero():
    drawn = heatmap(
        ["r"], ["a", "b"],
        {("r", "a"): Tint(value=2, text="+2", strong=True), ("r", "b"): Tint(value=-1, text="−1")},
    )  # fmt: skip
    assert len(shapes(drawn, "rect", "clear")) == 1
    up, down = shapes(drawn, "rect", "up")[0], shapes(drawn, "rect", "down")[0]
    assert float(up.get("fill-opacity")) == 2 * float(down.get("fill-opacity"))


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


def test_a_single_point_and_a_gap_are_drawn():
    drawn = curves([Line(name="a", x=[0, 1], y=[math.nan, 61.0])], title="t")
    assert len(shapes(drawn, "path", "line-ours")) == 1
    assert "nan" not in drawn


def test_the_diagram_has_seven_numbered_positions_and_tells_sign_and_surety_without_colour():
    effects = {
        position: Effect(mean=index - 3.0, low=index - 3.4, high=index - 2.6, href=f"#{position}")
        for index, position in enumerate(POSITIONS)
    }
    drawn = diagram(effects)
    for number, position in enumerate(POSITIONS, start=1):
        assert f">{number}</text>" in drawn
        assert f'href="#{position}"' in drawn
    assert "−3.0" in drawn
    assert "+3.0" in drawn
    assert len(shapes(drawn, "circle", "clear")) == 6 + 1  # the second position stands twice


def test_a_rug_has_one_tick_for_each_feature():
    drawn = ratios({"after embedding": [0.1, 0.2, 0.05]}, bound=0.25)
    assert shapes(drawn, "path", "rug-ours")[0].get("d").count("M") == 3
    assert "0.117" in drawn


def test_a_task_that_moves_much_does_not_flatten_the_others():
    calm = [estimate(1.0, low=0.5, high=1.5)]
    wild = [estimate(-40.0, low=-80.0, high=0.0)]

    def width(drawn):
        whisker = shapes(drawn, "line", "whisker-ours")[0]
        return float(whisker.get("x2")) - float(whisker.get("x1"))

    assert width(forests({"calm": calm, "wild": wild}, ["a"])) == pytest.approx(
        width(forests({"calm": calm, "too": calm}, ["a"]))
    )
