import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthpde.pages.svg import (
    AxisScale,
    drawing,
    element,
    escape,
    group,
    number,
    path,
    shorten,
    spell_tick,
    text,
)

finite = st.floats(-1e6, 1e6)


@given(st.text())
def test_any_text_is_harmless_and_well_formed(words):
    figure = drawing(9, 9, group(text(1, 2, words), title=words, href=words), title=words)
    root = ET.fromstring(figure)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= {
        "svg",
        "g",
        "a",
        "title",
        "text",
    }


def test_markup_in_a_name_stays_text():
    assert escape('<script>"&\x00') == "&lt;script&gt;&quot;&amp; "


@pytest.mark.parametrize(
    ("value", "output"), [(1.0, "1"), (-0.0, "0"), (-0.001, "0"), (2.346, "2.35"), (-10.0, "-10")]
)
def test_coordinates_are_short_and_have_one_zero(value, output):
    assert number(value) == output


def test_attributes_without_a_value_are_left_out():
    assert element("a", kind="", x=None, y=0.0, stroke_width=2) == '<a y="0" stroke-width="2"/>'


@given(finite, st.floats(0.001, 1e6))
def test_a_scale_keeps_its_ends_its_order_and_its_frame(low, span):
    scale = AxisScale(low, low + span, 10, 110)
    assert scale.at(low) == pytest.approx(10)
    assert scale.at(low + span) == pytest.approx(110)
    assert scale.at(low - span) == pytest.approx(10)
    assert scale.inside(low)
    assert not scale.inside(low + 2 * span)


@given(finite, st.floats(0.001, 1e6))
def test_ticks_are_few_round_and_inside(low, span):
    scale = AxisScale(low, low + span, 0, 1)
    ticks = scale.ticks(5)
    slack = 1e-9 * max(abs(low), span)
    assert 1 <= len(ticks) <= 7
    assert all(low - slack <= tick <= low + span + slack for tick in ticks)


def test_a_scale_without_extent_still_has_a_tick():
    assert AxisScale(3.0, 3.0, 0, 1).ticks() == [3.0]
    assert AxisScale(3.0, 3.0, 0, 1).at(3.0) == 0


def test_small_words():
    assert spell_tick(-0.5) == "−0.5"
    assert shorten("x" * 40) == "x" * 33 + "…"
    assert path([(0, 1), (2, 3.5)], "k", closed=True) == '<path d="M0,1 2,3.5Z" class="k"/>'
