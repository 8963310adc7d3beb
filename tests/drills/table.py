"""The table of what the drills tried and what held, made by a run of them.

A drill reports with the fixture `tally`; `pytest -m drill --table docs/reliability.md` writes the
rows between the marks of that page once all drills have ended. A drill that failed stands there as
failed, one that could not be made here as not tried, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from depthpde.files import write_whole

MARKS = "<!-- drills -->", "<!-- /drills -->"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    tried: str
    times: int
    held: str
    fine: bool = True


Tally = Callable[[str, int, str], None]


def about() -> str:
    """Say when and with what a table was made."""
    import platform

    import torch

    day = datetime.now(UTC).date().isoformat()
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"Made by `make drills` on {day}: {versions}."


def render(rows: Sequence[Row], about: str) -> str:
    """Write the rows as Markdown, those of one name as one."""
    lines = [about, "", "| what was tried | how often | what held |", "|---|---:|---|"]
    names = list(dict.fromkeys(row.tried for row in rows))
    for name in names:
        same = [row for row in rows if row.tried == name]
        ends = list(dict.fromkeys(row.held for row in same))
        sign = "✓" if all(row.fine for row in same) else "✗"
        times = sum(row.times for row in same)
        lines.append(f"| {name} | {times:,} | {sign} {'; '.join(ends)} |".replace("\n", " "))
    return "\n".join(lines)


def fill(page: Path, text: str) -> None:
    """Put a text between the marks of a page; the page must have both."""
    whole = page.read_text(encoding="utf-8")
    before, first, rest = whole.partition(MARKS[0])
    _, last, after = rest.partition(MARKS[1])
    if not first or not last:
        raise ValueError(
            f"{page} must have the marks {MARKS[0]} and {MARKS[1]}, got none; add both"
        )
    write_whole(page, f"{before}{first}\n{text}\n{last}{after}")
