"""Results → one page that needs nothing else: no network, no script, light, dark and paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from depthpde.files import write_whole
from depthpde.pages.formatting import format_p, plain
from depthpde.pages.resources import read_text
from depthpde.pages.templates import render_document
from depthpde.papers.registry import judge_all
from depthpde.records.evidence import gather
from depthpde.records.findings import spell_effect, spell_power, typeset
from depthpde.records.probes import WORDS
from depthpde.records.record import FINISHED, RUNS
from depthpde.records.results import Results, read_results
from depthpde.records.verdicts import Outcome
from depthpde.report.export import write_figures, write_tables
from depthpde.report.grid_section import GridSection, write_grid_section
from depthpde.report.provenance import list_environments, run_rows
from depthpde.report.variant_section import cell_anchor, variant_anchor

PAGE = "report.html"
FIRST = "placement"
"""The grid that leads the page where it is there."""
MARKS = {
    Outcome.SUPPORTED: "✓",
    Outcome.SMALLER: "↓",
    Outcome.CONTRADICTED: "✗",
    Outcome.EQUIVALENT: "=",
    Outcome.INCONCLUSIVE: "?",
}
TONES = {Outcome.SUPPORTED: "confirmed", Outcome.CONTRADICTED: "refused"}


@dataclass(frozen=True, slots=True)
class Report:
    """What was written, and what it was written from."""

    page: Path
    results: Results
    chapters: tuple[GridSection, ...]


def write_report(
    results: Path | Sequence[Path], out: Path | None = None, *, paper: bool = False
) -> Path:
    """Write the page, its tables and its figures, and return the page; see `make_report`.

    >>> page = dp.write_report(Path("results"), Path("out/report"))
    """
    return make_report(results, out, paper=paper).page


def make_report(
    results: Path | Sequence[Path], out: Path | None = None, *, paper: bool = False
) -> Report:
    """Write the page, its tables and its figures; the same records give the same bytes.

    Args:
        results: One results folder or several.
        out: Where to; the folder ``report`` inside the first results folder if not given.
        paper: Write every figure as PDF too; needs the ``paper`` extra.
    """
    places = [results] if isinstance(results, Path) else list(results)
    found = read_results(places)
    found = replace(found, broken=(*found.broken, *found.parts))
    folder = places[0] / "report" if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    chapters = write_grid_sections(found)
    evidence = [each.evidence for each in chapters]
    found = replace(found, findings=judge_all(evidence, found.findings))
    write_tables(chapters, folder)
    write_figures(chapters, folder, pdf=paper)
    inside = len(places) == 1 and folder.resolve().parent == places[0].resolve()
    page = render_page(found, chapters, runs=f"../{RUNS}" if inside else "")
    return Report(write_whole(folder / PAGE, page), found, tuple(chapters))


def write_grid_sections(results: Results) -> list[GridSection]:
    """Write one chapter a grid, the leading one first; a grid without any run is left out."""
    names = sorted(results.grids, key=lambda name: (name != FIRST, name))
    evidence = [gather(results.grids[name], results.records) for name in names]
    return [write_grid_section(each) for each in evidence if each.runs]


def render_page(results: Results, chapters: Sequence[GridSection], *, runs: str = "") -> str:
    """Render the page; everything that comes from a record is escaped.

    Args:
        results: What was read.
        chapters: What is shown of it.
        runs: Where the page finds the folder of runs; no links to them if empty.
    """
    from markupsafe import Markup

    machines = list_environments(results.records)
    return render_document(
        "depthpde.report",
        "report.html",
        style=read_text("depthpde.report", "report.css"),
        summary=_summary(results),
        first=chapters[0] if chapters else None,
        chapters=chapters,
        table=lambda chapter: Markup(chapter.table.html(_link(chapter))),
        cost=lambda chapter: Markup(chapter.cost.html(_link(chapter))),
        rows={each.evidence.name: run_rows(each.evidence, machines) for each in chapters},
        environments=machines,
        findings=results.findings,
        broken=[(each.path.as_posix(), each.reason) for each in results.broken],
        folder=runs,
        plain=plain,
        main=set(WORDS),
        mark=lambda verdict: MARKS[verdict],
        tone=lambda verdict: TONES.get(verdict, ""),
        effect=lambda claim: typeset(spell_effect(claim)),
        power=spell_power,
        chance=lambda p: "" if p is None else format_p(p),
        value=_value,
    )


def _summary(results: Results) -> str:
    entries = results.entries.values()
    finished = sum(each.state in FINISHED for each in entries)
    tasks = sorted({each.task for each in entries})
    seeds = {each.seed for each in entries}
    parts = [f"{finished} of {len(entries)} runs finished", ", ".join(tasks)]
    parts.append(f"{len(seeds)} seed" + ("" if len(seeds) == 1 else "s"))
    if results.broken:
        parts.append(f"{len(results.broken)} unread")
    return " · ".join(each for each in parts if each)


def _link(chapter: GridSection) -> Callable[[tuple[str, str]], str]:
    """Return where the numbers of tables lead: a cell to its runs, a mean to its article."""

    def link(cell: tuple[str, str]) -> str:
        task, variant = cell
        if task:
            return f"#{cell_anchor(chapter.evidence, task, variant)}"
        if variant == chapter.evidence.baseline:
            return "#runs"
        return f"#{variant_anchor(chapter.evidence, variant)}"

    return link


def _value(value: Any) -> str:
    return typeset(f"{value:.4g}" if isinstance(value, float) else str(value))
