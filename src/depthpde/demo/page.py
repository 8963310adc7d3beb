"""The demo as one page: picture, verdict and what to do next; then the pretrained model."""

from __future__ import annotations

from depthpde.comparison.page import curves_figure, gains_figure, ratio_figures
from depthpde.comparison.report import ComparisonReport
from depthpde.demo.look import PretrainedLook
from depthpde.demo.text import CONTROL, OURS, PLAIN
from depthpde.doctor.pages.page import MARKS as GRADES
from depthpde.doctor.verdict import one_a_row
from depthpde.isolation.answer import sentence
from depthpde.pages.formatting import counted
from depthpde.pages.resources import read_text
from depthpde.pages.templates import render_document

NEXT = (
    ("Your own model", 'dp.insert(model, "between_blocks")', "is the identity until it learns"),
    ("Your own data", 'dp.compare(dp.Task.from_arrays("mine", x, y), …)', "trains and judges"),
    ("Is your model healthy?", "depthpde doctor --hf FOLDER", "verdicts in plain words"),
    ("Does it leak?", "depthpde audit --hf FOLDER", "the first module at fault"),
    ("In earnest", "depthpde sweep placement --seeds 6", "five tasks, every position"),
)


def title(report: ComparisonReport) -> str:
    """Return what the page is called: the finding where there is one."""
    if report.verdict(OURS) == "better":
        return "A small GPT learns faster when every feature may look one byte back"
    return "A small GPT, with and without diffusion after every block"


def headline(report: ComparisonReport) -> str:
    """Describe in one sentence what the three models did."""
    means = {each.label: each.mean for each in report.entrants if each.scores}
    if len(means) < 3:
        return "some runs have no result; the same command goes on"
    ours = next(each for each in report.entrants if each.label == OURS)
    control = next(each for each in report.entrants if each.label == CONTROL)
    gains = list(report.gains(ours).values())
    won = sum(gain > 0 for gain in gains)
    verdict = report.verdict(OURS) or "one pair carries no verdict"
    beside = "below" if means[OURS] < means[CONTROL] else "above"
    return (
        f"{ours.parameters - report.baseline.parameters} learned numbers of diffusion take the "
        f"test loss from {means[PLAIN]:.2f} to {means[OURS]:.2f} nats a byte, lower in {won} of "
        f"{counted(len(gains), 'pair')} ({verdict}); that is {beside} its control, a free "
        f"convolution of {control.parameters - report.baseline.parameters} numbers, at "
        f"{means[CONTROL]:.2f}"
    )


def render_page(report: ComparisonReport, seen: PretrainedLook) -> str:
    """Render the demo as one self-contained HTML page.

    Args:
        report: The three small models.
        seen: The pretrained one.
    """
    from markupsafe import Markup

    diagnosis = seen.diagnosis
    return render_document(
        "depthpde.demo",
        "demo.html",
        style=read_text("depthpde.demo", "demo.css"),
        report=report,
        title=title(report),
        headline=headline(report),
        seeds=counted(report.pairs, "paired seed"),
        steps=NEXT,
        curves=Markup(curves_figure(report, width=560.0)),
        forest=Markup(gains_figure(report)),
        ratios=ratio_figures(report),
        table=Markup(report.table().html()),
        seen=seen,
        rows=[] if diagnosis is None else one_a_row(diagnosis.verdicts),
        grades={grade.value: mark for grade, mark in GRADES.items()},
        sentence=sentence,
    )
