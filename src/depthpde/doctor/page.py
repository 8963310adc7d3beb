"""A diagnosis as one page: the verdicts first, then what happens with depth, then every number.

One file of HTML that needs no network and no script; it follows the reader's light or dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from depthpde import __version__
from depthpde.doctor.depth_profile import DepthProfile, format_number, numbers
from depthpde.doctor.thresholds import Grade
from depthpde.doctor.verdict import HealthVerdict, one_a_row, worst_grade
from depthpde.pages.chart import ChartLine, grid_chart, line_chart

MARKS = {Grade.HEALTHY: "✓", Grade.WATCH: "!", Grade.ILL: "✗"}
"""A sign beside the word, so that no grade is told by colour alone."""
SUMMARY = {
    Grade.HEALTHY: "nothing found that asks for action",
    Grade.WATCH: "nothing ill, something to keep an eye on",
    Grade.ILL: "something is wrong, and named below",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart of the page."""

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
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_asset("depthpde.doctor", "doctor.html"))
    figures, grade = _figures(seen, verdicts), worst_grade(verdicts)
    return template.render(
        version=__version__,
        head=head,
        seen=seen,
        grade=grade.value,
        summary=SUMMARY[grade],
        rows=one_a_row(verdicts),
        all=verdicts,
        unmeasured=unmeasured,
        marks={grade.value: mark for grade, mark in MARKS.items()},
        first=figures[:1],
        figures=figures[1:],
        format_number=format_number,
        markup=Markup,
        style=Markup(
            _asset("depthpde.theory", "page.css") + _asset("depthpde.doctor", "doctor.css")
        ),
    )


def _figures(seen: DepthProfile, verdicts: Sequence[HealthVerdict]) -> list[Figure]:
    limits = {each.threshold.row: each.threshold.ill for each in verdicts}
    found = [
        _lines(seen, "Likeness to the input", ("drift.centred_cosine", "drift.cosine")),
        _lines(seen, "Differences between tokens", ("rank.residual",), limit=limits.get("rank")),
        _heads(seen),
        _lines(seen, "Gradient on the stream, against the last block's",
               ("gradient.amplification",), log=True),
        _lines(seen, "Roughness along the sequence", ("energy.smoothness",)),
        _lines(seen, "What each term adds, against how the stream varies",
               ("drift.attention_share", "drift.ffn_share"), log=True),
        _lines(seen, "Size of the field", ("energy.size",), log=True),
        _lines(seen, "Order of diffusion and attention: commutator",
               ("coupling.frozen", "coupling.nonlinear")),
        _bands(seen),
    ]  # fmt: skip
    return [each for each in found if each is not None and each.svg]


def _lines(
    seen: DepthProfile,
    title: str,
    names: tuple[str, ...],
    *,
    log: bool = False,
    limit: float | None = None,
) -> Figure | None:
    known = [seen[name] for name in names if name in seen]
    if not known:
        return None
    lines = [
        ChartLine(each.words, _plain(each.values), "ours" if k == 0 else "second")
        for k, each in enumerate(known)
    ]
    if known[0].baseline is not None:
        lines.append(ChartLine("random network", _plain(known[0].baseline), "baseline"))
    svg = line_chart(known[0].labels, lines, log=log, limit=limit)
    names_of = [f"{'solid' if k == 0 else 'dashed'}: {each.words}" for k, each in enumerate(known)]
    caption = "; ".join(names_of) + ("; dotted: random network" * (known[0].baseline is not None))
    return Figure(title, svg, caption)


def _heads(seen: DepthProfile) -> Figure | None:
    if "attention.entropy" not in seen:
        return None
    series = seen["attention.entropy"]
    svg = grid_chart(series.labels, [numbers(value) for value in series.values], "head")
    return Figure(
        "How widely each head looks", svg, "entropy against log n: 0 one token, 1 all alike"
    )


def _bands(seen: DepthProfile) -> Figure | None:
    if "spectrum.bands" not in seen:
        return None
    series = seen["spectrum.bands"]
    rows = [numbers(value) for value in series.values]
    svg = grid_chart(series.labels, rows, "band")
    return Figure("Where in frequency the field lives", svg, series.words)


def _plain(values: tuple[float | list[float], ...]) -> list[float]:
    return [numbers(value)[0] for value in values]


def _asset(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")
