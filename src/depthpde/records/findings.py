"""Findings: what was claimed, what was found, and whether the one bears out the other."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from depthpde.errors import check_one_of
from depthpde.files import write_json

FORMAT = 1
FINDINGS = "findings"


class FindingVerdict(StrEnum):
    """Whether a finding bears out a claim, at the scale it was tested."""

    CONFIRMED = "confirmed"
    PARTLY = "partly"
    """In the claimed direction, but smaller, or only in a part of the cases."""
    NOT_CONFIRMED = "not confirmed"
    UNDECIDED = "undecided"
    """Too few runs to tell, whatever they say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedClaim:
    """One row: claim → finding → verdict."""

    claim: str
    """What was claimed, and by whom."""
    finding: str
    """What was found, in words with numbers."""
    verdict: FindingVerdict
    n: int
    """Pairs of runs, or measurements, that the finding rests on."""
    interval: tuple[float, float] | None = None
    """95 % interval of the number that decides."""
    p: float | None = None
    """Its p, corrected for all that the findings test; None where nothing was tested."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What one experiment ends in."""

    name: str
    question: str
    scale: str
    """How large the experiment was: quick, mini or full."""
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
        """Return the findings of plain values, or say why they are none."""
        if values.get("format") != FORMAT:
            raise ValueError(f"findings must be of format {FORMAT}, got {values.get('format')!r}")
        try:
            claims = tuple(
                JudgedClaim(
                    **dict(row)
                    | {
                        "verdict": check_one_of("verdict", row["verdict"], FindingVerdict),
                        "interval": tuple(row["interval"]) if row.get("interval") else None,
                    }
                )
                for row in values["rows"]
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

    def markdown(self) -> str:
        """Return the claims as a table for a page, notes below."""
        rows = [
            "| claim | finding | verdict | n | 95 % interval | p |",
            "|---|---|---|--:|---|--:|",
        ]
        for each in self.claims:
            low_high = each.interval
            between = "" if low_high is None else f"[{low_high[0]:+.2f}, {low_high[1]:+.2f}]"
            p = "" if each.p is None else f"{each.p:.3g}"
            words = [each.claim, each.finding, f"**{each.verdict.value}**", str(each.n), between, p]
            rows.append(_row(words))
        notes = [f"\n{note[0].upper()}{note[1:]}." for note in self.notes if note]
        return "\n".join(rows + notes) + "\n"

    def tables_markdown(self) -> str:
        """Return the tables beside the claims for a page, each below its title."""
        parts = []
        for title, rows in self.tables.items():
            names = list(dict.fromkeys(name for row in rows for name in row))
            lines = [names, ["---"] + ["--:"] * (len(names) - 1)]
            lines += [[_cell(row.get(name)) for name in names] for row in rows]
            parts.append(f"**{title}**\n\n" + "\n".join(_row(line) for line in lines))
        return "\n\n".join(parts) + "\n"


def check_scale(results: Path, name: str, scale: str) -> None:
    """Refuse to write over findings of another scale; called before anything is computed."""
    path = results / FINDINGS / f"{name}.json"
    if not path.is_file():
        return
    there = read_findings(path).scale
    if there != scale:
        raise ValueError(
            f"`scale` must be {there!r}, that of {path}, got {scale!r}; choose another folder with "
            "--out, or remove that file"
        )


def read_findings(path: Path) -> Findings:
    """Return the findings that a file holds, or say why it holds none."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"{path} must be JSON, but {error}; remove it, and reproduce it"
        ) from error
    if not isinstance(said, dict):
        raise ValueError(f"{path} must hold an object, got {type(said).__name__}")
    return Findings.from_dict(said)


def typeset(text: str) -> str:
    """Return a text whose negative numbers have a real minus; dashes and exponents stay."""
    return re.sub(r"(?<![\w.−-])-(?=\d)", "−", text)


def _row(words: Sequence[str]) -> str:
    return "| " + " | ".join(typeset(word).replace("|", "\\|") for word in words) + " |"


def _beside(word: str, text: str, width: int) -> list[str]:
    """Wrap a text beside a word."""
    lines = textwrap.wrap(text, width - 10) or [""]
    return [f"{word if not at else '':<10}{line}" for at, line in enumerate(lines)]


def _strength(claim: JudgedClaim) -> str:
    parts = [f"n = {claim.n}"]
    if claim.interval is not None:
        parts.append(f"95 % interval [{claim.interval[0]:+.2f}, {claim.interval[1]:+.2f}]")
    if claim.p is not None:
        parts.append(f"p = {claim.p:.3g}")
    return ", ".join(parts)


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lay plain rows out in columns, numbers to the right."""
    if not rows:
        return ["  (nothing)"]
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
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


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
