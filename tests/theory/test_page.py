import dataclasses
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from depthpde.theory.claim import Check, Finding, Relation, examine
from depthpde.theory.page import render_page, spell_number, spell_prediction
from depthpde.theory.registry import CLAIMS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return [examine(CLAIMS[name]) for name in ("spectrum", "energy-decay", "commutator")]


@pytest.fixture(scope="module")
def page(findings: list[Finding]) -> str:
    return render_page(findings)


def own_part(page: str) -> str:
    """Cut the plotting library out: what is left is ours."""
    head, _, rest = page.partition("<footer>")
    return head + rest[rest.rindex("<script>") :]


def test_the_same_findings_give_the_same_bytes(findings: list[Finding], page: str) -> None:
    again = [examine(CLAIMS[finding.name]) for finding in findings]
    assert render_page(again) == page


def test_the_page_asks_nothing_of_the_network(page: str) -> None:
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", own_part(page))
    assert "default-src 'none'" in page
    assert "Plotly" in page


def test_every_claim_check_and_counter_example_is_on_the_page(
    findings: list[Finding], page: str
) -> None:
    text = html.unescape(own_part(page))
    for finding in findings:
        assert f'id="{finding.name}"' in text
        assert finding.counterexample in text
        assert all(check.quantity in text for check in finding.checks)
    assert "3 of 3 claims hold" in text


def test_every_figure_has_data_and_a_text_alternative(findings: list[Finding], page: str) -> None:
    plots = [plot for finding in findings for plot in finding.plots]
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    assert len(blocks) == len(plots) == 2
    for plot, block in zip(plots, blocks, strict=True):
        assert [each["name"] for each in json.loads(block)["series"]] == [
            series.name for series in plot.series
        ]
        assert plot.description in html.unescape(own_part(page))


def test_a_failing_claim_is_told_by_word_and_sign(findings: list[Finding]) -> None:
    broken = Check(quantity="x", predicted=1.0, measured=2.0)
    text = own_part(render_page([dataclasses.replace(findings[0], checks=(broken,))]))
    assert "✗ fails" in text
    assert "0 of 1 claims hold" in text


def test_a_blind_claim_is_told_by_word_and_sign(findings: list[Finding]) -> None:
    blind = dataclasses.replace(findings[0], refutation=findings[0].checks[0])
    text = own_part(render_page([blind]))
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


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to draw the page")
def test_a_browser_draws_every_plot_without_the_network(page: str, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    target = tmp_path / "theory.html"
    target.write_text(page, encoding="utf-8")
    flags = [
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking",
        "--disable-component-update --disable-sync --virtual-time-budget=8000 --dump-dom",
    ]
    drawn = subprocess.run(
        [
            CHROMIUM,
            *" ".join(flags).split(),
            f"--user-data-dir={tmp_path}/profile",
            f"file://{target}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert (
        len(re.findall(r'class="plot js-plotly-plot"', drawn)) == 3
    )  # two figures, one instrument
    assert "stable, signs kept" in drawn
