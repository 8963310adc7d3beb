"""Results → pages that need nothing else: no network, light, dark, paper and phone."""

from __future__ import annotations

import gc
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from depthpde.files import write_whole
from depthpde.pages.resources import read_text
from depthpde.pages.templates import render_document
from depthpde.papers.registry import judge_all
from depthpde.records.evidence import gather
from depthpde.records.index.index import Progress
from depthpde.records.protocols.steps import stage_of
from depthpde.records.record import RUNS
from depthpde.records.results import Results, read_results
from depthpde.report.export import write_claims, write_figures, write_tables
from depthpde.report.face import Face
from depthpde.report.grid_section import GridSection, write_grid_section
from depthpde.report.provenance import Provenance, trace
from depthpde.report.questions import contents_of, list_questions
from depthpde.report.site import CLAIMS, START, render_site
from depthpde.report.summary import summarize_results

PAGE = START
FIRST = "placement"
"""The grid that leads the page where it is there."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was written, and what it was written from."""

    page: Path
    results: Results
    grid_sections: tuple[GridSection, ...]


def write_report(
    results: Path | Sequence[Path],
    out: Path | None = None,
    *,
    paper: bool = False,
    single_file: bool = False,
) -> Path:
    """Write pages, tables and figures, and return the page to open; see `make_report`.

    >>> page = dp.write_report(Path("results"), Path("out/report"))
    """
    return make_report(results, out, paper=paper, single_file=single_file).page


@contextmanager
def _uncollected() -> Iterator[None]:
    """Do not look for cycles meanwhile.

    Records have none, and with 20,000 of them in memory the search takes a fifth of the time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.freeze()
            gc.unfreeze()  # what is left counts as old: the next search does not begin with it
            gc.enable()


@_uncollected()
def make_report(
    results: Path | Sequence[Path],
    out: Path | None = None,
    *,
    paper: bool = False,
    single_file: bool = False,
    parquet: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write pages, tables and figures; the same records give the same bytes.

    Args:
        results: One results folder or several.
        out: Where to; the folder ``report`` inside the first results folder if not given.
        paper: Write every figure as PDF too; needs the ``paper`` extra.
        single_file: Write one page that holds everything, to send to somebody.
        parquet: Write the numbers of tables as Parquet too; needs pyarrow.
        progress: Called with how many of the changed runs have been read, and of how many.
    """
    places = [results] if isinstance(results, Path) else list(results)
    found = read_results(places, progress=progress)
    found = replace(found, broken=(*found.broken, *found.parts))
    folder = places[0] / "report" if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    grid_sections = write_grid_sections(found)
    evidence = [each.evidence for each in grid_sections]
    found = replace(found, findings=judge_all(evidence, found.findings))
    origin = trace(found.records, evidence)
    write_tables(grid_sections, folder, origin, parquet=parquet)
    write_claims(found.findings, folder, parquet=parquet)
    write_figures(grid_sections, folder, pdf=paper)
    inside = len(places) == 1 and folder.resolve().parent == places[0].resolve()
    runs = f"../{RUNS}" if inside else ""
    if single_file:
        pages = {PAGE: render_page(found, grid_sections, origin, runs=runs)}
    else:
        pages = render_site(found, grid_sections, origin, runs=runs)
    for name, page in pages.items():
        write_whole(folder / name, page)
    _remove_others(folder, pages)
    return Report(folder / PAGE, found, tuple(grid_sections))


def _remove_others(folder: Path, pages: Container[str]) -> None:
    """Remove pages of an earlier report of ours that this one does not have."""
    for path in [*folder.glob("grid-*.html"), *folder.glob("runs-*.html"), folder / CLAIMS]:
        if path.name not in pages and path.is_file():
            with path.open("rb") as stream:
                ours = b'<meta name="generator" content="depthpde ' in stream.read(2000)
            if ours:
                path.unlink()


def write_grid_sections(results: Results) -> list[GridSection]:
    """Write one section a grid, the leading one first, stages of experiments last.

    A grid without any run is left out.
    """
    names = sorted(results.grids, key=lambda name: (name != FIRST, bool(stage_of(name)), name))
    evidence = [
        gather(results.grids[name], results.records, results.protocols.get(name)) for name in names
    ]
    return [write_grid_section(each) for each in evidence if each.runs]


def render_page(
    results: Results, grid_sections: Sequence[GridSection], origin: Provenance, *, runs: str = ""
) -> str:
    """Render everything as one page; what comes from a record is escaped.

    Args:
        results: What was read.
        grid_sections: What is shown of it.
        origin: What `trace` returned.
        runs: Where the page finds the folder of runs; no links to them if empty.
    """
    questions = list_questions(
        grid_sections, {s.evidence.name: f"#{s.anchor}" for s in grid_sections}
    )
    return render_document(
        "depthpde.report",
        "report.html",
        style=read_text("depthpde.report", "report.css"),
        summary=summarize_results(results),
        first=grid_sections[0] if grid_sections else None,
        grid_sections=grid_sections,
        contents=contents_of(questions),
        rows=origin.rows,
        environments=origin.environments,
        findings=results.findings,
        broken=[(each.path.as_posix(), each.reason) for each in results.broken],
        folder=runs,
        face=Face(),
    )
