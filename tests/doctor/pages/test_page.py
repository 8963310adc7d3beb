"""One self-contained page, in a real browser, in light and in dark."""

import math
import re
import xml.etree.ElementTree as ET

import pytest

from depthpde.doctor.depth_profile import DepthProfile, DepthSeries
from depthpde.doctor.diagnosis import diagnose
from depthpde.doctor.pages.page import render_page
from doctor.patients import classifier
from doctor.zoo import NO_RESIDUAL, VALIDATION

CASE = VALIDATION[1]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    patient = classifier(CASE, stabilizer=NO_RESIDUAL, positions=("after_embedding",))
    output = diagnose(patient.model, patient.batch, labels=patient.labels)
    return output.save(tmp_path_factory.mktemp("page") / "sub" / "doctor.html")


def test_the_page_needs_nothing_but_itself(page):
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert not re.findall(r'(?:src|href)="[^#"]', text)
    assert "url(" not in text
    assert len(text) < 200_000


def test_the_verdict_stands_before_the_figures(page):
    text = page.read_text(encoding="utf-8")
    assert text.index("✗ ill") < text.index("<svg")
    assert "representational drift" in text
    assert "add the residual back around" in text
    assert "depthpde doctor: Classifier is ill" in text


def test_every_series_is_on_the_page(page):
    text = page.read_text(encoding="utf-8")
    for name in ("drift.cosine", "rank.effective", "attention.entropy", "spectrum.bands"):
        assert name in text


def test_the_first_line_says_what_and_every_figure_has_its_words(page):
    drawn = re.findall(r"<figure>.*?</figure>", page.read_text(encoding="utf-8"), flags=re.S)
    assert len(drawn) >= 6
    for figure in drawn:
        label = ET.fromstring(re.search(r"<svg.*?</svg>", figure, flags=re.S)[0]).get("aria-label")
        assert len(label) > 20
        assert "<figcaption>" in figure


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_a_browser_shows_it_without_complaint_at_any_width(page, browser, width, scheme):
    browser.size(width, 900)
    browser.paint(scheme)
    browser.open(page.as_uri())
    assert browser.complaints == []
    assert browser.ask("document.documentElement.scrollWidth") == width
    assert browser.ask("document.querySelectorAll('svg.figure').length") >= 6


def render(**series):
    """Render hand-written measures: name → labels, values and, if any, a baseline."""
    made = {
        name: DepthSeries(name, "<i>words</i>", tuple(labels), tuple(values), *rest)
        for name, (labels, values, *rest) in series.items()
    }
    seen = DepthProfile(
        model="<b>", family="f", blocks=2, parameters=1, sequences=1, tokens=3, causal=False,
        seconds=0.1, faithful=None, series={k.replace("__", "."): v for k, v in made.items()},
    )  # fmt: skip
    return render_page("<script>head</script>", seen, (), {"<u>": "<s>"})


def marks(drawn, kind):
    root = ET.fromstring(re.findall(r"<svg.*?</svg>", drawn, flags=re.S)[-1])
    return [each for each in root.iter() if each.get("class") == kind]


def test_a_line_breaks_off_where_there_is_no_number():
    drawn = render(drift__cosine=("abcd", [1.0, math.nan, 3.0, 4.0]))
    assert len(marks(drawn, "dot-ours")) == 3
    assert len(marks(drawn, "line-ours")) == 2
    assert render(drift__cosine=("a", [math.nan])).count("<svg") == 1, "the model alone"


def test_a_logarithmic_figure_leaves_out_what_has_no_logarithm():
    drawn = render(gradient__amplification=("ab", [0.0, 10.0]))
    assert len(marks(drawn, "dot-ours")) == 1
    assert render(gradient__amplification=("ab", [0.0, -1.0])).count("<svg") == 1, "the model alone"


def test_the_random_network_is_dashed_and_named():
    drawn = render(rank__residual=("ab", [0.5, 0.6], (0.1, 0.2)))
    assert len(marks(drawn, "line-baseline")) == 2  # the curve and its piece in the legend
    assert "dashed: random network" in drawn


def test_a_grid_has_a_square_for_every_number_and_a_dash_for_every_gap():
    labels = ("embedding", "block 1")
    drawn = render(attention__entropy=(labels, [[0.1, math.nan], [1.0, 0.5]]))
    assert len(marks(drawn, "up")) == 3
    assert [each.text for each in marks(drawn, "quiet on")] == ["–"]
    assert ">input</text>" in drawn
    assert render(attention__entropy=(("a",), [[math.nan]])).count("<svg") == 1, "the model alone"


def test_many_blocks_name_only_some_of_them():
    labels = ["embedding", *(f"block {k}" for k in range(1, 41))]
    drawn = render(energy__smoothness=(labels, [1.0] * 41))
    named = [each.text for each in marks(drawn, "tick")]
    assert {"input", "5", "40"} <= set(named)
    assert "7" not in named


def test_names_are_written_as_text():
    drawn = render(drift__cosine=(("<b>",), [1.0]))
    for tag in ("<script>head", "<b>", "<i>", "<u>", "<s>"):
        assert tag not in drawn
