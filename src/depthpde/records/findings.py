"""Findings: what was claimed, what was found, and whether the one bears out the other."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from depthpde.errors import check_name, check_one_of
from depthpde.files import write_json
from depthpde.records.statistics.combination import LEAST_PAIRS
from depthpde.records.statistics.power import one_task_effect
from depthpde.records.verdicts import LEVEL, Outcome

FORMAT = 2
FINDINGS = "findings"
OWN = "own"
"""Scale of somebody's own grid under a protocol."""
_FIRST_SCALE = {
    "confirmed": Outcome.SUPPORTED,
    "partly": Outcome.SMALLER,
    "not confirmed": Outcome.INCONCLUSIVE,
    "undecided": Outcome.INCONCLUSIVE,
}
"""The words of format 1. Its *not confirmed* held several states: see `_of_first_format`."""
_NUMBER = re.compile(r"(< ?)?[+−±-]?\d|–?$")
"""What a cell of numbers begins with; nothing, or a dash, where there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedClaim:
    """One row: claim → finding → verdict, on the scale of `verdicts`."""

    claim: str
    """What was claimed, and by whom."""
    finding: str
    """What was found, in words with numbers."""
    verdict: Outcome
    n: int
    """Pairs of runs, or measurements, that the finding rests on."""
    effect: float | None = None
    """The number that decides; None where there is none."""
    unit: str = ""
    """Of that number, such as points; empty where it has none, and in older findings."""
    interval: tuple[float, float] | None = None
    """Its 95 % interval; None where none would keep its coverage."""
    p: float | None = None
    """Its p, in the order that the findings name; None where nothing was tested."""
    least: float | None = None
    """What such pairs show with 80 %; None where they can show nothing."""
    closed_by: str = ""
    """The claim before it in the order of tests that was not shown, so that this one was not
    tested; empty where it was reached, and in findings that are older than this field."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What one experiment ends in."""

    name: str
    question: str
    scale: str
    """How large the experiment was: quick, mini or full. A protocol fixes its own size, so under
    one there is no choice: an experiment of the papers is mini, and somebody's own grid is own."""
    claims: tuple[JudgedClaim, ...]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Title → rows of plain values, for what the claims rest on."""
    notes: tuple[str, ...] = ()
    """What a reader must know before believing the rest."""

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain JSON values."""
        return {
            "format": FORMAT,
            "name": self.name,
            "question": self.question,
            "scale": self.scale,
            "rows": [asdict(each) | {"verdict": each.verdict.value} for each in self.claims],
            "tables": {title: [dict(row) for row in rows] for title, rows in self.tables.items()},
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Findings:
        """Return the findings of plain values, or raise with the reason why they are none."""
        known = values.get("format")
        if known not in (1, FORMAT):
            raise ValueError(
                f"findings must be of format 1 or {FORMAT}, got {known!r}; reproduce them"
            )
        try:
            rows = [_of_first_format(row) if known == 1 else dict(row) for row in values["rows"]]
            claims = tuple(
                JudgedClaim(
                    **row
                    | {
                        "verdict": check_one_of("verdict", row["verdict"], Outcome),
                        "interval": tuple(row["interval"]) if row.get("interval") else None,
                    }
                )
                for row in rows
            )
            return cls(
                name=str(values["name"]),
                question=str(values["question"]),
                scale=str(values["scale"]),
                claims=claims,
                tables=dict(values.get("tables", {})),
                notes=tuple(values.get("notes", ())),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"findings must be whole, but {error!r} is wrong or missing"
            ) from error

    def write(self, results: Path) -> Path:
        """Write the findings into a results folder, and return their file."""
        folder = results / FINDINGS
        folder.mkdir(parents=True, exist_ok=True)
        return write_json(folder / f"{self.name}.json", self.to_dict())

    def text(self, width: int = 100) -> str:
        """Return the claims as a table for a terminal, its tables below."""
        parts = [f"{self.name} ({self.scale}): {self.question}", ""]
        for each in self.claims:
            parts += _beside("claim", each.claim, width) + _beside("found", each.finding, width)
            parts += [f"verdict   {each.verdict.value.upper()}   {_strength(each)}", ""]
        for title, rows in self.tables.items():
            parts += [title, *_columns(rows), ""]
        parts += [f"note: {each}" for each in self.notes]
        return "\n".join(parts).rstrip() + "\n"

    def markdown(self, *, notes: bool = True) -> str:
        """Return the claims as a table for a page, notes below unless the page has its own."""
        rows = [
            "| claim | finding | verdict | n | effect [95 %] | p | 80 % power from |",
            "|---|---|---|--:|---|--:|--:|",
        ]
        for each in self.claims:
            p = "" if each.p is None else f"{each.p:.2g}"
            numbers = [str(each.n), spell_effect(each), p, spell_power(each)]
            rows.append(_row([each.claim, each.finding, f"**{each.verdict.value}**", *numbers]))
        if notes and any(self.notes):
            rows += ["", *(f"- {note[0].upper()}{note[1:]}." for note in self.notes if note)]
        return "\n".join(rows) + "\n"

    def tables_markdown(self) -> str:
        """Return the tables beside the claims for a page, each below its title."""
        parts = [f"**{title}**\n\n{rows_markdown(rows)}" for title, rows in self.tables.items()]
        return "\n\n".join(parts) + "\n"


def rows_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return plain rows as a table for a page, numbers on the right."""
    names = columns_of(rows)
    cells = [[spell_value(row.get(name)) for name in names] for row in rows]
    columns = list(zip(*cells, strict=True))
    sides = ["--:" if any(each) and all(map(_NUMBER.match, each)) else "---" for each in columns]
    return "\n".join(_row(line) for line in [names, sides, *cells])


def columns_of(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the columns of plain rows in the order in which they appear; a row may lack some."""
    return tuple(dict.fromkeys(name for row in rows for name in row))


def spell_value(value: Any) -> str:
    """Return what a table holds in words; a dash where it holds nothing."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def spell_effect(claim: JudgedClaim, *, unit: bool = False) -> str:
    """Return effect and interval of a claim, to a tenth of the interval's width.

    Args:
        claim: Whose.
        unit: Whether to name the unit, where no column's head or finding does.
    """
    if claim.effect is None:
        return ""
    ends = claim.interval or ()
    width = abs(ends[1] - ends[0]) if ends else 0.0
    digits = min(4, max(2, 1 - math.floor(math.log10(width)))) if width > 0 else 2
    between = f" [{', '.join(f'{end:+.{digits}f}' for end in ends)}]" if ends else ""
    named = f" {claim.unit}" if unit and claim.unit else ""
    return f"{claim.effect:+.{digits}f}{named}{between}"


def spell_power(claim: JudgedClaim) -> str:
    """Return the difference from which such pairs would have shown it; – where from none."""
    return "–" if claim.least is None else f"{claim.least:.2g}"


def check_scale(results: Path, name: str, scale: str, older: Sequence[str] = ()) -> None:
    """Refuse to write over findings of another scale; called before anything is computed.

    Args:
        results: The results folder.
        name: Of the experiment.
        scale: How large it is.
        older: What findings of the same runs were called before.
    """
    path = results / FINDINGS / f"{name}.json"
    if not path.is_file():
        return
    there = read_findings(path).scale
    if there not in (scale, *older):
        raise ValueError(
            f"`scale` must be {there!r}, that of {path}, got {scale!r}; choose another folder with "
            "--out, or remove that file"
        )


def read_findings(path: Path) -> Findings:
    """Return the findings that a file holds, or raise with the reason why it holds none."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"{path} must be JSON, but {error}; remove it, and reproduce it"
        ) from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold an object, got {type(values).__name__}")
    return Findings.from_dict(values)


def typeset(text: str) -> str:
    """Return a text whose negative numbers have a real minus; dashes and exponents stay."""
    return re.sub(r"(?<![\w.−-])-(?=\d)", "−", text)


def _row(words: Sequence[str]) -> str:
    return "| " + " | ".join(typeset(word).replace("|", "\\|") for word in words) + " |"


def _beside(word: str, text: str, width: int) -> list[str]:
    """Wrap a text beside a word."""
    lines = textwrap.wrap(text, width - 10) or [""]
    return [f"{word if not at else '':<10}{line}" for at, line in enumerate(lines)]


def _of_first_format(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read a row of format 1 on the one scale, by the numbers it holds.

    Its intervals are Student's of all numbers together: their middle is the effect, and their
    width the spread that power is computed from. *Not confirmed* with the whole interval below 0
    is contradicted, with it above 0 smaller than claimed, and inconclusive otherwise.
    """
    found = dict(row)
    ends, n = row.get("interval"), int(row["n"])
    outcome = check_name("verdict", row["verdict"], _FIRST_SCALE)
    found["verdict"] = _FIRST_SCALE[outcome].value
    if not ends:
        return found
    low, high = (float(end) for end in ends)
    found["effect"] = (low + high) / 2
    if outcome == "not confirmed" and (row.get("p") or 0.0) <= LEVEL:
        found["verdict"] = (
            Outcome.CONTRADICTED
            if high < 0
            else Outcome.SMALLER
            if low > 0
            else Outcome.INCONCLUSIVE
        ).value
    if n >= LEAST_PAIRS:
        found["least"] = one_task_effect(n) * _spread(low, high, n)
    else:
        found |= {"interval": None, "verdict": Outcome.INCONCLUSIVE.value}
    return found


def _spread(low: float, high: float, n: int) -> float:
    """Return the standard deviation that Student's interval of n numbers was made of."""
    from scipy.special import stdtrit

    return float((high - low) / 2 / stdtrit(n - 1, 0.975) * n**0.5)


def _strength(claim: JudgedClaim) -> str:
    parts = [f"n = {claim.n}"]
    if claim.effect is not None:
        parts.append(f"effect {spell_effect(claim, unit=True)}")
    if claim.p is not None:
        parts.append(f"p = {claim.p:.2g}")
    if claim.least is not None:
        parts.append(f"80 % power from {claim.least:.2g}")
    return ", ".join(parts)


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lay plain rows out in columns, numbers to the right."""
    if not rows:
        return ["  (nothing)"]
    names = columns_of(rows)
    cells = [[spell_value(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[k]) for line in [names, *cells]) for k in range(len(names))]
    right = [all(isinstance(row.get(name), int | float | None) for row in rows) for name in names]
    return [
        "  "
        + "  ".join(
            word.rjust(width) if number else word.ljust(width)
            for word, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [names, *cells]
    ]
