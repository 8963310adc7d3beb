"""A comparison as one page: verdicts beside the figure of all pairs, then curves and ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from depthpde.comparison.entrant import Entrant
from depthpde.pages.figures.curves import Line, curves
from depthpde.pages.figures.forest import Estimate, forest
from depthpde.pages.figures.ratios import ratios
from depthpde.pages.resources import read_text
from depthpde.pages.table import Table
from depthpde.pages.templates import render_document
from depthpde.records.scores import Endpoint
from depthpde.records.verdicts import Verdict

if TYPE_CHECKING:
    from markupsafe import Markup

DIGITS = {Endpoint.ACCURACY: 1, Endpoint.LOSS: 3}
"""Decimals of a score."""
MARKS = {"better": "+", "worse": "−", "the same": "=", "inconclusive": "?"}


class Compared(Protocol):
    """What a page shows of a comparison."""

    @property
    def task(self) -> str:
        """The task's name."""

    @property
    def endpoint(self) -> Endpoint:
        """What is compared."""

    @property
    def entrants(self) -> Sequence[Entrant]:
        """The first is the baseline."""

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Variant → verdict."""

    @property
    def unit(self) -> str:
        """Of a gain."""

    def gains(self, entrant: Entrant) -> dict[int, float]:
        """Return seed → gain."""

    def table(self) -> Table:
        """Return every number."""


def render_page(report: Compared) -> str:
    """Render a comparison as one self-contained HTML page.

    Args:
        report: What was found.
    """
    from markupsafe import Markup

    return render_document(
        "depthpde.comparison",
        "compare.html",
        style=read_text("depthpde.comparison", "compare.css"),
        report=report,
        marks=MARKS,
        forest=Markup(gains_figure(report)),
        curves=Markup(curves_figure(report)),
        ratios=ratio_figures(report),
        table=Markup(replace(report.table(), notes=()).html()),
    )


def gains_figure(report: Compared) -> str:
    """Draw every variant's gain over the baseline with its pairs and interval."""
    estimates = []
    for each in report.entrants[1:]:
        found = report.verdicts.get(each.label)
        gains = tuple(report.gains(each).values())
        if found is None:
            continue
        ends = found.interval
        estimates.append(
            Estimate(
                label=each.label,
                mean=found.effect,
                low=None if ends is None else ends.low,
                high=None if ends is None else ends.high,
                n=len(gains),
                role=each.role,
                points=gains,
                title=found.sentence(),
                digits=DIGITS[report.endpoint],
            )
        )
    title = f"Gain over {report.entrants[0].label}, pair by pair"
    return forest(
        estimates, title=title, unit=f"{report.unit} better than {report.entrants[0].label}"
    )


def curves_figure(report: Compared, *, width: float = 520.0) -> str:
    """Draw the validation score of every variant along training, with the band of its seeds."""
    lines = [
        Line(
            name=each.label,
            x=each.curve.updates,
            y=each.curve.mean,
            low=each.curve.low,
            high=each.curve.high,
            role=each.role,
        )
        for each in report.entrants
        if each.curve.updates
    ]
    title = f"Validation {report.endpoint.value} along training"
    label = "%" if report.endpoint.value == "accuracy" else "nats"
    return curves(lines, title=title, x_label="updates", y_label=label, width=width, height=270.0)


def ratio_figures(report: Compared) -> list[tuple[Entrant, Markup]]:
    """Draw what diffusion has learned, for each variant that has any."""
    from markupsafe import Markup

    return [
        (each, Markup(ratios(each.ratios, title=f"Learned ratios by depth, {each.label}")))
        for each in report.entrants
        if each.ratios
    ]
