"""The table of what the drills tried and what held, made by runs of them.

A drill reports with the fixture `tally`; `pytest -m drill --table=docs/reliability.md tests` writes
the rows between the marks of that page once all drills have ended. Each row names the file of tests
that made it and the day: a run replaces the rows of the files it ran, and keeps the others with
their own day. A drill that failed stands there as failed, one that could not be made here as not
tried, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from depthpde.files import write_whole

MARKS = "<!-- drills -->", "<!-- /drills -->"
HEAD = "| what was tried | how often | what held | by | on |", "|---|---:|---|---|---|"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    tried: str
    times: int
    held: str
    by: str
    """File of tests, below tests/."""
    on: str
    """Day, as in 2026-11-17."""
    fine: bool = True

    def __str__(self) -> str:
        sign = "✓" if self.fine else "✗"
        cells = (self.tried, f"{self.times:,}", f"{sign} {self.held}", f"`{self.by}`", self.on)
        return f"| {' | '.join(' '.join(each.replace('|', '/').split()) for each in cells)} |"

    @classmethod
    def parse(cls, line: str) -> Row:
        """Read a line of the table; a line of another form is refused."""
        cells = [each.strip() for each in line.strip().strip("|").split(" | ")]
        if len(cells) != 5 or cells[2][:1] not in ("✓", "✗"):
            raise ValueError(
                f"a row has five cells, the third with ✓ or ✗, got {line!r}; "
                "remove the old table and run `make drills`"
            )
        tried, times, held, by, on = cells
        return cls(
            tried, int(times.replace(",", "")), held[1:].strip(), by.strip("`"), on, held[0] == "✓"
        )


Tally = Callable[[str, int, str], None]


def today() -> str:
    """Return the day in UTC."""
    return datetime.now(UTC).date().isoformat()


def about() -> str:
    """Say with what the last run was made."""
    import platform

    import torch

    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"Last run on {today()}: {versions}. A row keeps the day on which its file last ran."


def merge(old: Sequence[Row], new: Sequence[Row], ran: Set[str]) -> list[Row]:
    """Return the new rows, those of one name as one, and the old ones of files that did not run."""
    joined: dict[tuple[str, str], Row] = {}
    for row in new:
        name = (row.by, row.tried)
        before = joined.get(name)
        if before is not None:
            held = "; ".join(dict.fromkeys((*before.held.split("; "), row.held)))
            times, fine = before.times + row.times, before.fine and row.fine
            row = Row(row.tried, times, held, row.by, row.on, fine)
        joined[name] = row
    kept = [row for row in old if row.by not in ran]
    return sorted([*kept, *joined.values()], key=lambda row: row.by)


def read(page: Path) -> list[Row]:
    """Return the rows of the table that stands in a page."""
    _, text, _ = _parts(page)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [Row.parse(line) for line in lines if line not in HEAD]


def fill(page: Path, new: Sequence[Row], ran: Set[str], about: str) -> None:
    """Bring the table of a page up to date after some files ran; the page must have both marks."""
    before, _, after = _parts(page)
    text = "\n".join([about, "", *HEAD, *map(str, merge(read(page), new, ran))])
    write_whole(page, f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")


def _parts(page: Path) -> tuple[str, str, str]:
    whole = page.read_text(encoding="utf-8")
    before, first, rest = whole.partition(MARKS[0])
    text, last, after = rest.partition(MARKS[1])
    if not first or not last:
        raise ValueError(
            f"{page} must have the marks {MARKS[0]} and {MARKS[1]}, got none; add both"
        )
    return before, text, after
