"""A diagnosis as one page: the verdicts first, then what happens with depth, then every number.

One file of HTML that needs no network and no script; it follows the reader's light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from depthpde.doctor.depth_profile import DepthProfile, format_number, numbers
from depthpde.doctor.pages.picture import model_picture
from depthpde.doctor.thresholds import Grade, Threshold
from depthpde.doctor.verdict import HealthVerdict, one_a_row, worst_grade
from depthpde.pages.figures.curves import Line, curves
from depthpde.pages.figures.heatmap import Tint, heatmap
from depthpde.pages.resources import read_text
from depthpde.pages.templates import render_document

MARKS = {Grade.HEALTHY: "✓", Grade.WATCH: "!", Grade.ILL: "✗"}
"""A sign beside the word, so that no grade depends on colour alone."""
SUMMARY = {
    Grade.HEALTHY: "nothing found that needs action",
    Grade.WATCH: "nothing ill, something to keep an eye on",
    Grade.ILL: "something is wrong, and named below",
}


SIGNS = {"high": "≥", "low": "≤"}
TICKS = 9
"""Labels along the bottom of a figure; with more blocks than this only some are named."""
LOOKS = (("ours", "solid"), ("other", "dotted"))
"""Role and dash of the measures that share a figure."""

MEASURES: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("Likeness to the input", ("drift.centred_cosine", "drift.cosine"), False),
    ("Differences between tokens", ("rank.residual",), False),
    ("Gradient on the stream, against the last block's", ("gradient.amplification",), True),
    ("Roughness along the sequence", ("energy.smoothness",), False),
    (
        "What each term adds, against how the stream varies",
        ("drift.attention_share", "drift.ffn_share"),
        True,
    ),
    ("Size of the field", ("energy.size",), True),
    (
        "Order of diffusion and attention: commutator",
        ("coupling.frozen", "coupling.nonlinear"),
        False,
    ),
)
"""What is drawn by depth: title, series, whether the side is logarithmic."""
ILL_LINES = {"rank.residual": "rank"}
"""Series whose figure shows where a row of the verdicts is ill."""


@dataclass(frozen=True, slots=True)
class DoctorFigure:
    """One figure of the page; `svg` is `Markup`."""

    title: str
    svg: str
    caption: str


def render_page(
    head: str, seen: DepthProfile, verdicts: Sequence[HealthVerdict], unmeasured: Mapping[str, str]
) -> str:
    """Render a diagnosis as one self-contained HTML page.

    Args:
        head: What was examined, in one line.
        seen: What was measured.
        verdicts: The worst first.
        unmeasured: What has no verdict, and why.
    """
    figures, grade = _figures(seen, verdicts), worst_grade(verdicts)
    return render_document(
        "depthpde.doctor.pages",
        "doctor.html",
        style=read_text("depthpde.doctor.pages", "doctor.css"),
        head=head,
        seen=seen,
        grade=grade.value,
        summary=SUMMARY[grade],
        rows=[each for each in one_a_row(verdicts) if each.grade is not Grade.HEALTHY],
        fine=[each for each in one_a_row(verdicts) if each.grade is Grade.HEALTHY],
        picture=picture("The model", seen.blocks, verdicts),
        healthy_range=healthy_range,
        all=verdicts,
        unmeasured=by_reason(unmeasured),
        marks={grade.value: mark for grade, mark in MARKS.items()},
        figures=figures,
        format_number=format_number,
    )


def by_reason(unmeasured: Mapping[str, str]) -> dict[str, str]:
    """Put rows together that were not measured for one reason: names → reason."""
    names: dict[str, list[str]] = {}
    for row, why in unmeasured.items():
        names.setdefault(why, []).append(row)
    return {", ".join(rows): why for why, rows in names.items()}


def healthy_range(limit: Threshold) -> str:
    """Write the healthy range of a condition's number."""
    low, high = (format_number(each) for each in limit.healthy)
    if any(math.isnan(each) for each in limit.healthy):
        return f"{'<' if limit.worse == 'high' else '>'} {format_number(limit.watch)}"
    return low if low == high else f"{low} … {high}"


def _figures(seen: DepthProfile, verdicts: Sequence[HealthVerdict]) -> list[DoctorFigure]:
    limits = {each.threshold.row: each.threshold for each in verdicts}
    lines = [
        _lines(seen, title, names, log=log, ill=limits.get(ILL_LINES.get(names[0], "")))
        for title, names, log in MEASURES
    ]
    found = [*lines[:2], _heads(seen), *lines[2:], _bands(seen)]
    return [each for each in found if each is not None]


def _lines(
    seen: DepthProfile,
    title: str,
    names: tuple[str, ...],
    *,
    log: bool = False,
    ill: Threshold | None = None,
) -> DoctorFigure | None:
    known = [seen[name] for name in names if name in seen]
    lines = [
        Line(name=each.words, x=range(len(each)), y=firsts(each.values), role=role, dots=True)
        for each, (role, _) in zip(known, LOOKS, strict=False)
    ]
    caption = [f"{dash}: {each.words}" for each, (_, dash) in zip(known, LOOKS, strict=False)]
    if known and known[0].baseline is not None:
        values = firsts(known[0].baseline)
        role, name = "baseline", "random network"
        lines.append(Line(name=name, x=range(len(values)), y=values, role=role, dots=True))
        caption.append(f"dashed: {name}")
    labels = known[0].labels if known else ()
    return draw_lines(title, lines, labels, "; ".join(caption), log=log, ill=ill)


def draw_lines(
    title: str, lines: list[Line], labels: Sequence[str], caption: str, *,
    log: bool = False, ill: Threshold | None = None,
) -> DoctorFigure | None:  # fmt: skip
    """Draw measures by depth; None where nothing can be drawn.

    Args:
        title: What the figure is.
        lines: The measures; the first decides whether there is anything to be seen.
        labels: The depths.
        caption: What the lines are.
        log: Make the side logarithmic.
        ill: Whose limit is drawn.
    """
    if not any(_can_be_drawn(y, log) for line in lines for y in line.y):
        return None
    svg = curves(
        lines,
        title=title,
        trivial={} if ill is None else {f"ill {SIGNS[ill.worse]}": ill.ill},
        x_label="depth",
        x_ticks=_ticks(labels),
        log_y=log,
        width=400.0,
    )
    return _figure(title, svg, caption)


def picture(title: str, blocks: int, verdicts: Sequence[HealthVerdict]) -> DoctorFigure:
    """Draw the model with what is ill marked."""
    return _figure(title, model_picture(blocks, verdicts), "")


def _heads(seen: DepthProfile) -> DoctorFigure | None:
    title = "How widely each head looks"
    return _grid(
        seen, "attention.entropy", title, "entropy against log n: 0 one token, 1 all alike"
    )


def _bands(seen: DepthProfile) -> DoctorFigure | None:
    return _grid(seen, "spectrum.bands", "Where in frequency the field lives")


def _grid(seen: DepthProfile, name: str, title: str, caption: str = "") -> DoctorFigure | None:
    """Draw numbers in [0, 1], several a depth, as a row of squares for each depth."""
    if name not in seen:
        return None
    series = seen[name]
    rows = {_short(label): numbers(value) for label, value in series}
    columns = [str(k + 1) for k in range(max((len(row) for row in rows.values()), default=0))]
    cells = {
        (label, columns[k]): Tint(value=value, text=_share(value), title=f"{label}: {value:.3f}")
        for label, row in rows.items()
        for k, value in enumerate(row)
        if math.isfinite(value)
    }
    if not cells:
        return None
    wide = max(26.0, min(56.0, 330 / len(columns)))
    svg = heatmap(list(rows), columns, cells, title=title, largest=1.0, cell=wide)
    return _figure(title, svg, caption or series.words)


def _figure(title: str, svg: str, caption: str) -> DoctorFigure:
    from markupsafe import Markup

    return DoctorFigure(title, Markup(svg), caption)


def _ticks(labels: Sequence[str]) -> dict[float, str]:
    stride = max(1, math.ceil(len(labels) / TICKS))
    return {float(k): _short(labels[k]) for k in range(0, len(labels), stride)}


def _short(label: str) -> str:
    return {"embedding": "input"}.get(label, label.removeprefix("block "))


def _share(value: float) -> str:
    return "1" if value >= 0.995 else f"{value:.2f}".removeprefix("0")


def _can_be_drawn(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def firsts(values: tuple[float | list[float], ...]) -> list[float]:
    """Give the first number of each value."""
    return [numbers(value)[0] for value in values]
