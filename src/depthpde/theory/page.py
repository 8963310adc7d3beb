"""Findings as one page: the verdicts, an instrument to play with, the figures, every number.

One file of HTML that needs no network: sheet and script stand inside. The page holds no clock and
no random name, so the same findings give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from depthpde.pages.figures.bars import bars
from depthpde.pages.figures.curves import Line, curves
from depthpde.pages.resources import read_text
from depthpde.pages.style import read_shared
from depthpde.pages.templates import instrument_script, render_document
from depthpde.theory.claim import Check, Finding, LineRole, Plot, Relation, TheoryVerdict
from depthpde.theory.record import overall

MARKS = {TheoryVerdict.HOLDS: "✓", TheoryVerdict.FAILS: "✗", TheoryVerdict.BLIND: "?"}
"""A sign beside the word, so that no verdict is told by colour alone."""
WIDTH, HEIGHT = 400.0, 250.0


def render_page(findings: Sequence[Finding]) -> str:
    """Render findings as one self-contained HTML page."""
    return render_document(
        "depthpde.theory",
        "theory.html",
        style=read_shared("chart.css") + read_text("depthpde.theory", "theory.css"),
        script=instrument_script(),
        findings=findings,
        verdict=overall(findings).value,
        num_holding=sum(finding.verdict is TheoryVerdict.HOLDS for finding in findings),
        figures=_figures(findings),
        marks={verdict.value: mark for verdict, mark in MARKS.items()},
        number=spell_number,
        prediction=spell_prediction,
    )


def draw_plot(plot: Plot) -> str:
    """Draw what a claim has to show, with the figures of every other page."""
    if plot.bars:
        groups = [str(each) for each in plot.series[0].x]
        series = {each.name: each.y for each in plot.series}
        return bars(
            groups,
            series,
            title=plot.title,
            y_label=plot.y_label,
            log=plot.log_y,
            width=WIDTH,
            height=HEIGHT,
        )
    lines = [
        Line(
            name=each.name,
            x=[float(x) for x in each.x],
            y=each.y,
            role=each.role.value,
            dots=each.role is LineRole.WARNING,
        )
        for each in plot.series
    ]
    return curves(
        lines,
        title=plot.title,
        x_label=plot.x_label,
        y_label=plot.y_label,
        log_x=plot.log_x,
        log_y=plot.log_y,
        width=WIDTH,
        height=HEIGHT,
    )


def spell_number(value: float) -> str:
    """Write a number as a person would: four digits, scientific only where it must be."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.4g}".replace("-", "−")
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}".replace("-", "−")


def spell_prediction(check: Check) -> str:
    """Write what was predicted, with how the measured number must stand to it.

    A bound of zero is written with its slack, and an equality with a slack that can be seen.
    """
    sign = check.comparison.value
    if check.comparison is Relation.AT_MOST and check.predicted == 0 and check.tolerance > 0:
        return f"{sign} {spell_number(check.tolerance)}"
    text = f"{sign} {spell_number(check.predicted)}"
    if check.comparison is Relation.EQUAL and check.tolerance >= 1e-4 * abs(check.predicted) > 0:
        return f"{text} ± {spell_number(check.tolerance)}"
    return text


def _figures(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    from markupsafe import Markup

    return [
        {"claim": finding.name, "plot": plot, "svg": Markup(draw_plot(plot))}
        for finding in findings
        for plot in finding.plots
    ]
