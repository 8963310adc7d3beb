"""Tables in pages that people write: what stands between two marks is made from records.

<!-- depthpde: table placement -->
(made, never written by hand)
<!-- /depthpde -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from depthpde.errors import check_name
from depthpde.files import write_whole
from depthpde.papers.placement_tables import escape_table, line_table
from depthpde.papers.protocol_table import at_last_look, protocol_rows, protocol_table
from depthpde.records.findings import Findings, rows_markdown
from depthpde.report.grid_section import GridSection

_OPEN, _CLOSE = re.compile(r"^<!-- *depthpde\b.*$", re.MULTILINE), "<!-- /depthpde -->"
_MARKED = re.compile(r"(^<!-- depthpde: (.+?) -->\n)(.*?)(^<!-- /depthpde -->)", re.DOTALL | re.M)


def parts_of(grid_sections: Iterable[GridSection], findings: Iterable[Findings]) -> dict[str, str]:
    """Return what can be filled in, by name.

    Of a grid: ``table GRID``, ``rows GRID`` (the same without notes), ``escapes GRID`` (who left a
    plateau and when) and ``lines GRID`` (the baseline beside what needs no sequence model). Of an
    experiment: ``claims NAME``, ``verdicts NAME`` (the same without notes), ``beside NAME`` (the
    tables beside its claims) and ``beside NAME: TITLE`` (one of them). ``protocols``: every
    experiment under a protocol that has begun, one row each, and the names of the others.
    """
    listed, sections = list(findings), list(grid_sections)
    parts = {f"claims {each.name}": each.markdown() for each in listed}
    parts |= {f"verdicts {each.name}": each.markdown(notes=False) for each in listed}
    parts |= {f"beside {each.name}": each.tables_markdown() for each in listed}
    parts |= {
        f"beside {each.name}: {title}": rows_markdown(rows)
        for each in listed
        for title, rows in each.tables.items()
        if rows
    }
    rows = protocol_rows([each.evidence for each in sections], listed)
    parts["protocols"] = protocol_table(rows)
    for each in sections:
        parts[f"table {each.evidence.name}"] = each.table.markdown()
        parts[f"rows {each.evidence.name}"] = each.table.markdown(notes=False)
        for part, made in (("escapes", escape_table), ("lines", line_table)):
            if found := made(at_last_look(each.evidence)):
                parts[f"{part} {each.evidence.name}"] = rows_markdown(found)
    return parts


def fill_blocks(text: str, parts: Mapping[str, str]) -> str:
    """Return a page with everything between its marks made anew.

    Args:
        text: The page.
        parts: Name → what belongs between its marks.
    """
    _check_marks(text)

    def made(match: re.Match[str]) -> str:
        name = check_name("depthpde", match[2], parts)
        return f"{match[1]}{parts[name].strip()}\n{match[4]}"

    return _MARKED.sub(made, text)


def _check_marks(text: str) -> None:
    """Refuse a page whose marks are not pairs: what lies between would be lost."""
    marks = [line for line in text.splitlines() if _OPEN.match(line) or line == _CLOSE]
    if not marks:
        raise ValueError(
            "a page to fill must hold a mark such as <!-- depthpde: table placement -->, with "
            f"{_CLOSE} on a line of its own below it; got none"
        )
    for number, mark in enumerate(marks):
        fits = mark == _CLOSE if number % 2 else re.fullmatch(r"<!-- depthpde: .+ -->", mark)
        if not fits or (number % 2 == 0 and number + 1 == len(marks)):
            raise ValueError(
                "marks must come by twos, <!-- depthpde: NAME --> and below it "
                f"{_CLOSE}, each on a line of its own; look at {mark!r}"
            )


def fill_pages(pages: Sequence[Path], parts: Mapping[str, str]) -> list[Path]:
    """Fill pages in place, all or none, and return those that changed."""
    made = []
    for page in pages:
        old = page.read_text(encoding="utf-8")
        try:
            made.append((page, old, fill_blocks(old, parts)))
        except ValueError as error:
            raise ValueError(f"{page}: {error}") from error
    return [write_whole(page, new) for page, old, new in made if new != old]
