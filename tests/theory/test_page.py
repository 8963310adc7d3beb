"""The page of the theory: every number, every figure, the same instrument as the dashboard."""

import dataclasses
import html
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from depthpde.pages.style import csp_hash
from depthpde.pages.templates import instrument_script
from depthpde.theory.claim import (
    Check,
    Finding,
    LineRole,
    Plot,
    Relation,
    Series,
    examine,
    line,
)
from depthpde.theory.page import draw_plot, render_page, spell_number, spell_prediction
from depthpde.theory.registry import CLAIMS


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return [examine(CLAIMS[name]) for name in ("spectrum", "energy-decay", "commutator")]


@pytest.fixture(scope="module")
def page(findings: list[Finding]) -> str:
    return render_page(findings)


def make_plot(*series: Series, **chosen: bool) -> Plot:
    return Plot(
        title="t", x_label="ratio r", y_label="gain", series=series, description="d", **chosen
    )


def test_the_same_findings_give_the_same_bytes(findings: list[Finding], page: str) -> None:
    again = [examine(CLAIMS[finding.name]) for finding in findings]
    assert render_page(again) == page


def test_the_page_is_one_small_file_that_allows_its_own_script_alone(page: str) -> None:
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", page)
    assert f"script-src '{csp_hash(instrument_script())}'" in html.unescape(page)
    assert len(re.findall("<script", page)) == 1
    assert len(page.encode()) < 200_000


def test_every_claim_check_and_counter_example_is_on_the_page(
    findings: list[Finding], page: str
) -> None:
    text = html.unescape(page)
    for finding in findings:
        assert f'id="{finding.name}"' in text
        assert finding.counterexample in text
        assert all(check.quantity in text for check in finding.checks)
    assert "3 of 3 claims hold" in text


def test_every_plot_is_a_figure_with_its_names_and_a_text_alternative(
    findings: list[Finding], page: str
) -> None:
    plots = [plot for finding in findings for plot in finding.plots]
    drawn = re.findall(r"<svg.*?</svg>", page, flags=re.S)
    assert len(drawn) == len(plots) == 2
    for plot, svg in zip(plots, drawn, strict=True):
        label = ET.fromstring(svg).get("aria-label") or ""
        assert all(series.name in label for series in plot.series)
        assert html.escape(plot.description, quote=False) in page.replace("&#39;", "'")


def test_a_logarithmic_plot_leaves_out_what_has_no_logarithm() -> None:
    drawn = draw_plot(make_plot(line("a", [1, 2, 3], [0.0, 10.0, 1000.0]), log_y=True))
    path = next(each for each in ET.fromstring(drawn).iter() if each.get("class") == "line-ours")
    assert len((path.get("d") or "").split()) == 2
    assert "1000" in drawn


def test_roles_are_told_by_dashes_and_marks() -> None:
    series = [line(role.value, [0, 1], [k, k + 1], role) for k, role in enumerate(LineRole)]
    drawn = draw_plot(make_plot(*series))
    for role in LineRole:
        assert f'class="line-{role.value}"' in drawn
    assert drawn.count('class="dot-warning"') == 2


def test_bars_have_one_group_a_name() -> None:
    bands = Series(name="mix", x=("low", "high"), y=(0.5, 1e-6))
    drawn = draw_plot(make_plot(bands, bars=True, log_y=True))
    assert ">low</text>" in drawn
    assert ">high</text>" in drawn
    assert len(re.findall(r"<title>mix, ", drawn)) == 2


def test_a_failing_claim_is_told_by_word_and_sign(findings: list[Finding]) -> None:
    broken = Check(quantity="x", predicted=1.0, measured=2.0)
    text = render_page([dataclasses.replace(findings[0], checks=(broken,))])
    assert "✗ fails" in text
    assert "0 of 1 claims hold" in text


def test_a_blind_claim_is_told_by_word_and_sign(findings: list[Finding]) -> None:
    blind = dataclasses.replace(findings[0], refutation=findings[0].checks[0])
    text = render_page([blind])
    assert "? blind" in text
    assert "? passes" in text


def test_text_is_escaped(findings: list[Finding]) -> None:
    text = render_page([dataclasses.replace(findings[0], statement="a <b> & c")])
    assert "a &lt;b&gt; &amp; c" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-0.5, "−0.5"),
        (3.99759, "3.998"),
        (0.0096305, "0.009631"),
        (337.108, "337.1"),
        (2.2e-15, "2.2e−15"),
        (1e-12, "1e−12"),
        (74000000.0, "7.4e7"),
    ],
)
def test_numbers_are_written_as_a_person_would(value: float, text: str) -> None:
    assert spell_number(value) == text


@pytest.mark.parametrize(
    ("comparison", "predicted", "tolerance", "text"),
    [
        (Relation.EQUAL, -0.5, 0.01, "= −0.5 ± 0.01"),
        (Relation.EQUAL, 4.0, 1e-12, "= 4"),
        (Relation.AT_MOST, 0.0, 1e-12, "≤ 1e−12"),
        (Relation.AT_MOST, 1.0, 1e-12, "≤ 1"),
        (Relation.AT_LEAST, 0.05, 0.0, "≥ 0.05"),
    ],
)
def test_predictions_show_their_slack_where_it_matters(
    comparison: Relation, predicted: float, tolerance: float, text: str
) -> None:
    check = Check(
        quantity="x",
        predicted=predicted,
        measured=0.0,
        comparison=comparison,
        tolerance=tolerance,
    )
    assert spell_prediction(check) == text


@pytest.fixture(scope="module")
def shown(page: str, browser, tmp_path_factory: pytest.TempPathFactory):
    """Open the page as a file in a real browser."""
    target: Path = tmp_path_factory.mktemp("theory") / "theory.html"
    target.write_text(page, encoding="utf-8")

    def show(address: str = "", width: int = 1400, scheme: str = "light"):
        browser.open("about:blank")  # a change behind # alone would not load the page anew
        browser.size(width, 900)
        browser.paint(scheme)
        browser.open(target.as_uri() + address)
        browser.wait("Number(document.getElementById('instrument').dataset.drawn) > 0")
        return browser

    return show


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_a_browser_draws_the_page_without_the_network_or_a_complaint(shown, width, scheme) -> None:
    browser = shown(width=width, scheme=scheme)
    assert browser.complaints == []
    assert browser.ask("document.documentElement.scrollWidth") == width
    assert browser.ask("document.querySelectorAll('.plot svg').length") == 4
    assert browser.ask("performance.getEntriesByType('resource').length") == 0
    assert "stable, signs kept" in browser.ask("document.getElementById('reading').textContent")


def test_a_slider_moves_every_chart_at_once_and_the_address_keeps_it(shown) -> None:
    browser = shown("#scales=1&steps=2&ratio=0.1")
    drawn = "[...document.querySelectorAll('.plot')].map((each) => each.innerHTML)"
    before = browser.ask(drawn)
    browser.ask("document.getElementById('steps').focus()")
    browser.press("ArrowRight")
    after = browser.ask(drawn)
    assert len(before) == 4
    assert all(old != new for old, new in zip(before, after, strict=True))
    browser.wait("location.hash.includes('steps=3')")
    assert "ratio=0.1" in browser.ask("location.hash")
    assert browser.complaints == []


def test_an_address_that_no_slider_can_have_is_taken_as_near_as_can_be(shown) -> None:
    browser = shown("#ratio=9&scheme=leapfrog&steps=-4&signal=%3Cb%3E")
    values = "Object.fromEntries(new FormData(document.getElementById('instrument')))"
    output = browser.ask(values)
    assert (output["scheme"], output["signal"]) == ("explicit", "steps")
    assert (float(output["ratio"]), float(output["steps"])) == (0.6, 1)
    assert "✗ unstable" in browser.ask("document.getElementById('reading').textContent")
    assert browser.complaints == []
