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
from depthpde.experiments.findings import Findings
from depthpde.files import write_whole
from depthpde.report.chapter import Chapter

_MARKED = re.compile(r"(<!-- depthpde: (.+?) -->\n)(.*?)(<!-- /depthpde -->)", re.DOTALL)


def parts_of(chapters: Iterable[Chapter], findings: Iterable[Findings]) -> dict[str, str]:
    """Return what can be filled in, by name.

    ``table GRID``, ``rows GRID`` (the same without notes) and ``claims EXPERIMENT``.
    """
    parts = {f"claims {each.name}": each.markdown() for each in findings}
    for each in chapters:
        parts[f"table {each.evidence.name}"] = each.table.markdown()
        parts[f"rows {each.evidence.name}"] = each.table.markdown(notes=False)
    return parts


def fill(text: str, parts: Mapping[str, str]) -> str:
    """Return a page with everything between its marks made anew.

    Args:
        text: The page.
        parts: Name → what belongs between its marks.
    """

    def made(match: re.Match[str]) -> str:
        name = check_name("depthpde", match[2], parts)
        return f"{match[1]}{parts[name].strip()}\n{match[4]}"

    return _MARKED.sub(made, text)


def fill_pages(pages: Sequence[Path], parts: Mapping[str, str]) -> list[Path]:
    """Fill pages in place, and return those that changed."""
    changed = []
    for page in pages:
        old = page.read_text(encoding="utf-8")
        new = fill(old, parts)
        if new != old:
            changed.append(write_whole(page, new))
    return changed
