"""All that is known of one variant: its curves, its learned ratios, what it does to a field."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from depthpde.pages.figures.bars import bars
from depthpde.pages.figures.curves import Line, curves
from depthpde.pages.figures.ratios import ratios
from depthpde.pages.formatting import anchor, format_interval, format_p, plain, signed
from depthpde.records.evidence import Evidence, trivial
from depthpde.records.learned_filters import (
    BANDS,
    OMEGA,
    Passed,
    learned_ratios,
    passed,
    start_and_bound,
)
from depthpde.records.learning_curves import LearningCurve, validation_curve
from depthpde.records.probes import measured_bands, measured_transfer
from depthpde.records.protocols.steps import stage_of
from depthpde.records.record import Record
from depthpde.records.run_model import POSITIONS
from depthpde.records.statistics.stratified import Overall

PI_TICKS = {0.0: "0", math.pi / 2: "π/2", math.pi: "π"}
PLACES = 3
"""Of a layer that stands in every block, so many are drawn."""
SMALL = (290.0, 185.0)
"""Width and height of the curves of one variant."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure and what stands below it."""

    svg: str
    caption: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantSection:
    """All that is known of one variant."""

    variant: str
    anchor: str
    number: int | None
    """Of its position in the diagram; None for what stands for no position."""
    role: str
    words: str
    summary: str
    """The mean difference, in words."""
    figures: Mapping[str, Drawn]


def write_variant_section(
    evidence: Evidence, variant: str, found: Overall | None, at: Mapping[str, str]
) -> VariantSection:
    """Gather all that is known of one variant.

    Args:
        evidence: The runs.
        variant: Which one.
        found: Its difference over tasks; None without any pair.
        at: Position → the variant that stands for it.
    """
    position = next((name for name, each in at.items() if each == variant), None)
    summary = "no pair of runs to show yet"
    if found is not None:
        summary = f"{signed(found.mean)} points {format_interval(found.interval)}"
        summary += "" if stage_of(evidence.name) else f", p (Holm) {format_p(found.p_holm)}"
    role = evidence.role(variant)
    shown = {evidence.baseline: "baseline", variant: role.value}
    figures = {
        f"curve-{task}": Drawn(task_curves(evidence, task, shown, *SMALL))
        for task in evidence.tasks
        if (task, variant) in evidence.runs
    }
    records = evidence.records(variant)
    through = passed(records)
    figures |= _ratios(variant, records)
    figures |= _transfer(variant, records, through) | _bands(variant, records, through)
    return VariantSection(
        variant=variant,
        anchor=variant_anchor(evidence, variant),
        number=list(POSITIONS).index(position) + 1 if position else None,
        role=role.value,
        words=evidence.words.get(variant, ""),
        summary=summary,
        figures=figures,
    )


def variant_anchor(evidence: Evidence, variant: str) -> str:
    """Return the name of a variant's section."""
    return anchor("variant", evidence.name, variant)


def cell_anchor(evidence: Evidence, task: str, variant: str) -> str:
    """Return the name of the first run of a cell in the list of runs."""
    return anchor("cell", evidence.name, task, variant)


def curve_line(name: str, course: LearningCurve, role: str) -> Line:
    """Draw a course as a line with the band of its seeds."""
    return Line(
        name=plain(name),
        x=course.updates,
        y=course.mean,
        low=course.low,
        high=course.high,
        role=role,
        title=f"{plain(name)}: mean of n = {course.n} seeds, band from the worst to the best",
    )


def task_curves(
    evidence: Evidence,
    task: str,
    shown: Mapping[str, str],
    width: float = 360.0,
    height: float = 230.0,
) -> str:
    """Draw the validation curves of some variants of a task, and its trivial lines.

    Nothing, an empty string, where every run was validated once, at its end: that is no curve.

    Args:
        evidence: The runs.
        task: Which one.
        shown: Variant → role of its line.
        width: In pixels.
        height: The same.
    """
    lines = []
    for variant, role in shown.items():
        runs = evidence.runs.get((task, variant), {})
        course = validation_curve([run for _, run in sorted(runs.items())])
        if course.updates:
            lines.append(curve_line(variant, course, role))
    if lines and all(len(each.x) < 2 for each in lines):
        return ""
    return curves(
        lines,
        title=f"{task}: validation accuracy by update",
        trivial=trivial(evidence, task),
        x_label="updates",
        y_label=f"{task}, %",
        width=width,
        height=height,
    )


def _ratios(variant: str, records: Sequence[Record]) -> dict[str, Drawn]:
    sites = learned_ratios(records)
    if not sites:
        return {}
    start, bound = start_and_bound(records[0].config)
    words = {site.words: values for site, values in sites.items()}
    drawn = ratios(words, start=start, bound=bound, title=f"{plain(variant)}: learned ratios")
    return {
        "ratios": Drawn(drawn, "Learned ratios: every feature of every run a tick; disc: mean.")
    }


def _transfer(
    variant: str, records: Sequence[Record], through: Mapping[str, Passed]
) -> dict[str, Drawn]:
    """Draw H(ω) by formula from the ratios; as the probe measured it where no formula is known."""
    lines = [
        Line(
            name=place,
            x=tuple(OMEGA),
            y=tuple(each.mean),
            low=() if index else tuple(each.low),  # several bands would hide each other
            high=() if index else tuple(each.high),
            role="other" if index else "ours",
        )
        for index, (place, each) in enumerate(through.items())
    ]
    caption = "What each frequency keeps, from the learned ratios; band: the first, all features."
    if not lines:
        caption = "What each frequency keeps, as measured on finished models."
        lines = [
            Line(name=place, x=omega, y=gain, role="other" if index else "control")
            for index, (place, (omega, gain)) in enumerate(measured_transfer(records).items())
        ]
    if not lines:
        return {}
    drawn = curves(
        lines[:PLACES],
        title=f"{plain(variant)}: what each frequency keeps, |H(ω)|",
        x_label="frequency ω, radians per site",
        y_label="|H(ω)|",
        x_ticks=PI_TICKS,
        y_range=(0.0, 1.05 * max(1.0, *(max(each.y) for each in lines))),
    )
    return {"transfer": Drawn(drawn, caption)}


def _bands(
    variant: str, records: Sequence[Record], through: Mapping[str, Passed]
) -> dict[str, Drawn]:
    """Draw the energy in four bands: as measured, or what a white field would keep."""
    found, origin = measured_bands(records), "measured"
    if not found:
        origin = "of a white field"
        found = {
            place: {"before": [1.0] * len(BANDS), "after": each.bands()}
            for place, each in list(through.items())[:1]
        }
    figures = {}
    for index, (place, energies) in enumerate(list(found.items())[:PLACES]):
        title = f"{plain(variant)}: energy by band, {place}, {origin}"
        drawn = bars(BANDS, energies, title=title, y_label="energy", width=290.0, height=185.0)
        name = f"bands-{index + 1}" if index else "bands"
        figures[name] = Drawn(drawn, f"Energy by band of frequency, {place}; {origin}.")
    return figures
