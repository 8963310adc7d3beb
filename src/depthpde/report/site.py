"""The pages of a report: a start page that answers, and a few pages for each grid.

    report.html                     verdict, map, one figure, what it cannot tell, every question
    claims.html                     claim → finding → verdict
    grid-NAME.html                  figures, tables and costs of one grid
    grid-NAME-variants.html …       a section for each variant, so many a page as it holds
    runs-NAME.html                  its runs; filters, sorts and pages by a script of ours

Names follow from the grid's name alone, so that a link stays good when records are added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from depthpde.pages.formatting import file_names, plain
from depthpde.pages.resources import inline_modules, read_text
from depthpde.pages.templates import render_document
from depthpde.records.protocols.sealing import PROTOCOLS
from depthpde.records.record import RUNS
from depthpde.records.results import Results
from depthpde.report.claim_tables import claim_tables
from depthpde.report.face import Face
from depthpde.report.grid_section import GridSection
from depthpde.report.limits import limits
from depthpde.report.provenance import Provenance, RunRow
from depthpde.report.questions import Link, ReportQuestion, contents_of, list_questions
from depthpde.report.summary import summarize_results
from depthpde.report.variant_section import VariantSection, cell_anchor

START, CLAIMS = "report.html", "claims.html"
ROOM = 380_000
"""Characters of variants on one page: with sheet and frame it stays below half a megabyte."""
SHOWN = 100
"""Runs that a page shows without its script."""
HEADS = {
    "task": "task", "variant": "variant", "seed": "seed", "state": "state", "accuracy": "test %",
    "run": "run", "data": "data", "environment": "environment",
}  # fmt: skip
KINDS = ("csv", "tex", "md", "txt")


@dataclass(frozen=True, slots=True)
class GridPages:
    """The pages of one grid."""

    grid_section: GridSection
    stem: str
    variant_sections: tuple[tuple[VariantSection, ...], ...]
    """Articles of each page of variants."""

    @property
    def grid(self) -> str:
        """The grid's own page."""
        return f"grid-{self.stem}.html"

    @property
    def runs(self) -> str:
        """The page of its runs."""
        return f"runs-{self.stem}.html"

    def variants(self, number: int) -> str:
        """Return a page of variants by its number, from 0 on."""
        return f"grid-{self.stem}-variants{f'-{number + 1}' if number else ''}.html"

    @property
    def name(self) -> str:
        """The grid's name."""
        return self.grid_section.evidence.name

    def places(self, results: Results, runs: str) -> list[Link]:
        """Return where a claim's figures, its runs and its protocol stand.

        Args:
            results: What was read.
            runs: Where pages find the folder of runs; the protocols lie beside it.
        """
        found = [Link("figures and tables", self.grid), Link("every run", self.runs)]
        if runs and self.name in results.protocols:
            place = f"{runs.removesuffix(RUNS)}{PROTOCOLS}/{quote(self.name)}.json"
            found.append(Link(f"protocol {results.protocols[self.name].digest}", place))
        return found

    def homes(self) -> dict[str, str]:
        """Return anchor → page of everything that is not on the grid's own page."""
        found = {
            variant_section.anchor: self.variants(number)
            for number, page in enumerate(self.variant_sections)
            for variant_section in page
        }
        evidence = self.grid_section.evidence
        cells = ((task, variant) for task in evidence.tasks for variant in evidence.variants)
        return found | {cell_anchor(evidence, *cell): self.runs for cell in cells}


def render_site(
    results: Results, grid_sections: Sequence[GridSection], origin: Provenance, *, runs: str = ""
) -> dict[str, str]:
    """Render every page: name of its file → text; what comes from a record is escaped.

    Args:
        results: What was read.
        grid_sections: What is shown of it.
        origin: What `trace` returned.
        runs: Where pages find the folder of runs; no links to them if empty.
    """
    stems = file_names([each.evidence.name for each in grid_sections])
    grids = [
        GridPages(c, stems[c.evidence.name], _split(c.variant_sections)) for c in grid_sections
    ]
    questions = list_questions(
        grid_sections, {each.grid_section.evidence.name: each.grid for each in grids}
    )
    contents = [Link("the answer", START)]
    contents += [Link("claims", CLAIMS)] if results.findings else []
    contents += contents_of(questions)
    pages = {START: _start(results, grids, questions, contents)}
    if results.findings:
        files = {name: list(each) for name, each in claim_tables(results.findings).items()}
        pages[CLAIMS] = _render(
            "claims.html",
            CLAIMS,
            contents,
            findings=results.findings,
            files=files,
            kinds=KINDS,
            places={each.name: each.places(results, runs) for each in grids},
        )
    for each in grids:
        judged = any(found.name == each.name for found in results.findings)
        pages |= _grid_pages(each, contents, CLAIMS if judged else "")
        pages[each.runs] = _runs_page(each, contents, origin, runs)
    return pages


def _start(
    results: Results,
    grids: Sequence[GridPages],
    questions: Sequence[ReportQuestion],
    contents: Sequence[Link],
) -> str:
    first = grids[0] if grids else None
    page = _render(
        "start.html",
        START,
        contents,
        summary=summarize_results(results),
        first=None if first is None else first.grid_section,
        questions=questions,
        limits=[] if first is None else limits(results, first.grid_section.evidence),
        broken=[(each.path.as_posix(), each.reason) for each in results.broken],
    )
    return page if first is None else _relink(page, first.homes(), "")


def _grid_pages(each: GridPages, contents: Sequence[Link], claims: str) -> dict[str, str]:
    """Render a grid's own page and those of its variants.

    Args:
        each: The grid.
        contents: What every page leads to.
        claims: The page of its claims; empty where it has none.
    """
    grid_section = each.grid_section
    several = len(each.variant_sections) > 1
    named = {
        f"variants {number + 1}" if several else "variant by variant": each.variants(number)
        for number in range(len(each.variant_sections))
    }
    page = _render(
        "grid.html",
        each.grid,
        contents,
        grid_section=grid_section,
        stem=each.stem,
        runs=sum(map(len, grid_section.evidence.runs.values()))
        + len(grid_section.evidence.missing),
        runs_page=each.runs,
        claims_page=claims,
        variant_pages=named,
        kinds=KINDS,
    )
    homes = each.homes()
    pages = {each.grid: _relink(page, homes, each.grid).replace('"#runs"', f'"{each.runs}"')}
    for number, variant_sections in enumerate(each.variant_sections):
        name = each.variants(number)
        page = _render(
            "variants.html",
            name,
            contents,
            grid_section=grid_section,
            variant_sections=variant_sections,
            grid_page=each.grid,
            sections={plain(a.variant): a.anchor for a in variant_sections},
        )
        pages[name] = _relink(page, homes, name)
    return pages


def _runs_page(each: GridPages, contents: Sequence[Link], origin: Provenance, folder: str) -> str:
    rows = origin.rows[each.grid_section.evidence.name]
    used = {row.environment for row in rows}
    tasks, variants, states = (
        list(dict.fromkeys(getattr(row, key) for row in rows))
        for key in ("task", "variant", "state")
    )
    return _render(
        "runs.html",
        each.runs,
        contents,
        script=inline_modules("depthpde.report", "runs.js"),
        grid_section=each.grid_section,
        stem=each.stem,
        grid_page=each.grid,
        heads=HEADS,
        choices={"task": tasks, "variant": variants, "state": states},
        rows=rows[:SHOWN],
        total=len(rows),
        folder=folder,
        environments={name: words for name, words in origin.environments.items() if name in used},
        data=_data(rows, tasks, variants, folder),
    )


def _data(rows: Sequence[RunRow], tasks: list[str], variants: list[str], folder: str) -> Markup:
    """Write the rows for the script; nothing in them can end the element that holds them."""
    task_at, variant_at = (
        {name: index for index, name in enumerate(names)} for names in (tasks, variants)
    )
    listed = [
        [task_at[row.task], variant_at[row.variant], row.seed, row.state, row.accuracy, row.run,
         row.data, row.environment]
        for row in rows
    ]  # fmt: skip
    cells = {r.anchor: [task_at[r.task], variant_at[r.variant]] for r in rows if r.anchor}
    payload = {
        "folder": folder,
        "tasks": tasks,
        "variants": variants,
        "cells": cells,
        "rows": listed,
    }
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", " ").replace("\u2029", " "))


def _render(
    template: str, here: str, contents: Sequence[Link], *, script: str = "", **values: Any
) -> str:
    shared = {"sections": {}, "contents": contents, "here": here, "face": Face()}
    style = read_text("depthpde.report", "report.css")
    return render_document(
        "depthpde.report", template, style=style, script=script, **(shared | values)
    )


def _split(variant_sections: Sequence[VariantSection]) -> tuple[tuple[VariantSection, ...], ...]:
    """Divide sections among pages in their order, so many as there is room for."""
    pages: list[list[VariantSection]] = []
    room = 0
    for each in variant_sections:
        size = sum(len(drawn.svg) for drawn in each.figures.values())
        if not pages or size > room:
            pages.append([])
            room = ROOM
        pages[-1].append(each)
        room -= size
    return tuple(map(tuple, pages))


def _relink(page: str, homes: Mapping[str, str], here: str) -> str:
    """Point links to places of other pages at those pages."""

    def lead(found: re.Match[str]) -> str:
        home = homes.get(found[1], here)
        return found[0] if home == here else f'href="{home}#{found[1]}"'

    return re.sub(r'href="#((?:cell|variant)--[^"]*)"', lead, page)
