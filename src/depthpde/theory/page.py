"""Findings as one page: the verdicts, an instrument to play with, the plots, every number.

One file of HTML that needs no network: styles, script and the plotting library are inlined. The
page holds no clock and no random name, so the same findings give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from depthpde import __version__
from depthpde.theory.claim import Check, Finding, Plot, Relation, TheoryVerdict
from depthpde.theory.record import overall

MARKS = {TheoryVerdict.HOLDS: "✓", TheoryVerdict.FAILS: "✗", TheoryVerdict.BLIND: "?"}
"""A sign beside the word, so that no verdict is told by colour alone."""


def render_page(findings: Sequence[Finding]) -> str:
    """Render findings as one self-contained HTML page."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_asset("page.html"))
    return template.render(
        version=__version__,
        findings=findings,
        verdict=overall(findings).value,
        num_holding=sum(finding.verdict is TheoryVerdict.HOLDS for finding in findings),
        figures=_figures(findings),
        marks={verdict.value: mark for verdict, mark in MARKS.items()},
        number=spell_number,
        prediction=spell_prediction,
        style=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
        plotly=Markup(get_plotlyjs()),
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
    plots = [(finding.name, plot) for finding in findings for plot in finding.plots]
    return [
        {"id": f"figure-{index}", "claim": name, "plot": plot, "data": _data(plot)}
        for index, (name, plot) in enumerate(plots, start=1)
    ]


def _data(plot: Plot) -> dict[str, Any]:
    return {
        "x": plot.x_label,
        "y": plot.y_label,
        "logX": plot.log_x,
        "logY": plot.log_y,
        "bars": plot.bars,
        "series": [
            {"name": each.name, "x": each.x, "y": each.y, "role": each.role.value}
            for each in plot.series
        ],
    }


def _asset(name: str) -> str:
    return (files("depthpde.theory") / name).read_text(encoding="utf-8")
