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
from depthpde.pages.style import read_shared, style_sheet
from depthpde.pages.svg import drawing, text

BAD = "<script>alert(1)</script>\x00&\"'"


def estimate(mean=1.0, **printed):
    return Estimate(label=printed.pop("label", "v"), mean=mean, **printed)


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
    assert used <= {*re.findall(r"\.([a-z0-9-]+)", read_shared("figure.css"))}


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


LONG = "a label that is far longer than anybody would choose for a variant of theirs"
CROWDED = {
    "forest": lambda: forest(
        [estimate(-100.25, label=LONG, low=-2000.5, high=1e4), estimate(0.1, label="b")]
    ),
    "forests": lambda: forests(
        {name: [estimate(k - 2.0, low=-k, high=9.0)] for k, name in enumerate("abcdef")}, [LONG]
    ),
    "heatmap": lambda: heatmap(
        [LONG, "b"], ["ListOps", "Retr."], {("b", "Retr."): Tint(value=1, text="−100.0 ± 9")}
    ),
    "curves": lambda: curves(
        [
            Line(name=LONG, x=[0, 100000], y=[-0.00012, 0.0]),
            Line(name="random network", x=[0, 1], y=[0.0, 0.0], role="baseline"),
            Line(name=LONG, x=[0, 1], y=[0.0, 0.0], role="other"),
        ],
        title="t", x_label="updates", y_label="a measure with a long name",
        trivial={"majority": -0.0001, "root": -0.00005},
    ),
    "log": lambda: curves(
        [Line(name="a", x=[1e-3, 1e5], y=[1e-12, 1e9], dots=True)],
        title="t", log_x=True, log_y=True, x_label="time",
    ),
    "bars": lambda: bars(
        ["low", "low-mid", "high-mid", "high"],
        {LONG: [1e-12, 1e-6, 1, 9], "mix": [1, 1, 1, 1]},
        title="t", log=True, y_label="energy kept",
    ),
    "ratios": lambda: ratios({LONG: [0.1, 0.2], "b": [0.25]}, bound=0.25, start=0.24),
    "diagram": lambda: diagram({"between_blocks": Effect(mean=-100.0)}),
}  # fmt: skip

MEASURE = """
(() => {
  const svg = document.querySelector("svg.figure");
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("text")]
    .map((each) => [each.textContent, each.getBoundingClientRect()]);
  const out = boxes.filter(([, b]) => b.left < frame.left - 1 || b.right > frame.right + 1 ||
    b.top < frame.top - 1 || b.bottom > frame.bottom + 1).map(([text]) => text);
  const touching = [];
  boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
    const across = a.left < b.right - 1 && b.left < a.right - 1;
    if (across && a.top < b.bottom - 3 && b.top < a.bottom - 3) touching.push([one, other]);
  }));
  return { out, touching };
})()
"""


@pytest.mark.parametrize("name", CROWDED)
def test_words_stay_inside_the_frame_and_apart_in_a_real_browser(browser, tmp_path, name):
    page = tmp_path / "figure.html"
    page.write_text(f"<style>{style_sheet()}</style>{CROWDED[name]()}", encoding="utf-8")
    browser.size(1400, 900)
    browser.open(page.as_uri())
    assert browser.ask(MEASURE) == {"out": [], "touching": []}


def test_the_measure_itself_can_fail(browser, tmp_path):
    page = tmp_path / "figure.html"
    bad = drawing(100, 20, text(60, 10, "leaves the frame"), text(65, 12, "touches"), title="t")
    page.write_text(f"<style>{style_sheet()}</style>{bad}", encoding="utf-8")
    browser.open(page.as_uri())
    found = browser.ask(MEASURE)
    assert found["out"] == ["leaves the frame", "touches"]
    assert len(found["touching"]) == 1
