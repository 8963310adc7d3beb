"""The seven positions in a Transformer."""

from depthpde.pages.figures.diagram import Effect, diagram
from depthpde.records.run_model import POSITIONS
from pages.figures.reading import shapes, words


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


def test_a_position_that_was_not_tried_is_an_empty_disc():
    drawn = diagram({"in_heads": Effect(mean=1.0)})
    assert len(shapes(drawn, "circle", "up")) == 1
    assert not shapes(drawn, "circle", "clear")
    assert words(drawn).count("–") + sum(each.endswith(" –") for each in words(drawn)) == 6


def test_the_largest_effect_has_the_deepest_tint():
    drawn = diagram({"in_heads": Effect(mean=-4.0), "after_ffn": Effect(mean=2.0)})
    down, up = shapes(drawn, "circle", "down")[0], shapes(drawn, "circle", "up")[0]
    assert float(down.get("fill-opacity")) == 2 * float(up.get("fill-opacity"))
