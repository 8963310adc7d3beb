"""One self-contained page, in a real browser, in light and in dark."""

import math
import re
import shutil
import subprocess

import pytest

from depthpde.doctor.diagnosis import diagnose
from depthpde.pages.chart import ChartLine, grid_chart, line_chart
from doctor.patients import classifier
from doctor.zoo import NO_RESIDUAL, VALIDATION

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CASE = VALIDATION[1]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    patient = classifier(CASE, stabilizer=NO_RESIDUAL, positions=("after_embedding",))
    said = diagnose(patient.model, patient.batch, labels=patient.labels)
    return said.save(tmp_path_factory.mktemp("page") / "sub" / "doctor.html")


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
    assert "give every term its residual" in text
    assert "depthpde doctor: Classifier is ill" in text


def test_every_series_is_on_the_page(page):
    text = page.read_text(encoding="utf-8")
    for name in ("drift.cosine", "rank.effective", "attention.entropy", "spectrum.bands"):
        assert name in text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_browser_shows_it_without_complaint(page, tmp_path):
    shot = tmp_path / "shot.png"
    run = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900",
         f"--screenshot={shot}", "--enable-logging=stderr", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert shot.stat().st_size > 20_000
    assert "CONSOLE" not in run.stderr


def test_a_line_breaks_off_where_there_is_no_number():
    drawn = line_chart(("a", "b", "c"), [ChartLine("x", [1.0, math.nan, 3.0], "ours")])
    assert drawn.count("<circle") == 2
    assert line_chart(("a",), [ChartLine("x", [math.nan], "ours")]) == ""


def test_a_logarithmic_chart_leaves_out_what_has_no_logarithm():
    drawn = line_chart(("a", "b"), [ChartLine("x", [0.0, 10.0], "ours")], log=True, limit=1.0)
    assert drawn.count("<circle") == 1
    assert 'class="limit"' in drawn


def test_rules_stand_at_round_numbers():
    drawn = line_chart(("a", "b"), [ChartLine("x", [0.0, 0.97], "ours")])
    assert re.findall(r'end">([^<]*)<', drawn) == ["0", "0.25", "0.5", "0.75", "1"]


def test_names_are_written_as_text():
    drawn = line_chart(("<b>",), [ChartLine("<script>", [1.0], "ours")])
    assert "<script>" not in drawn
    assert "<b>" not in drawn


def test_a_grid_has_a_cell_for_every_number():
    drawn = grid_chart(("block 1", "block 2"), [[0.1, math.nan], [1.0, 0.5]], "head")
    assert drawn.count("<rect") == 4
    assert "block 1: not measured" in drawn
    assert grid_chart((), [], "head") == ""
