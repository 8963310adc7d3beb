"""How numbers and names are written: the same in tables, figures and pages."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from html import escape

from depthpde.records.statistics.interval import Interval

SHORT = {
    "listops": "ListOps",
    "text": "Text",
    "retrieval": "Retr.",
    "image": "Image",
    "pathfinder": "Pathf.",
    "pathx": "Path-X",
    "mnist": "MNIST",
    "newsgroups": "News",
    "wikitext2": "WikiText",
    "enwik8": "enwik8",
}
"""The heads of columns, by the first word of a task's name."""


def format_number(value: float, digits: int = 1) -> str:
    """Write a number with a fixed number of digits and a real minus sign."""
    if not math.isfinite(value):
        return "—"
    text = f"{value:.{digits}f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "−")


def signed(value: float, digits: int = 1) -> str:
    """Write a difference with its sign; what rounds to nothing is ±0.0."""
    text = format_number(value, digits)
    if text[0] in "−—":
        return text
    return f"+{text}" if float(text) else f"±{text}"


def format_interval(interval: Interval | None, digits: int = 1) -> str:
    """Write an interval of a difference."""
    if interval is None:
        return "[no interval]"
    return f"[{signed(interval.low, digits)}, {signed(interval.high, digits)}]"


def format_p(p: float) -> str:
    """Write a p-value with two digits that matter, never as zero."""
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def format_seconds(seconds: float) -> str:
    """Write a span of time as a person would: two units at most."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s" if whole < 600 else f"{whole // 60} min"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def format_size(value: float) -> str:
    """Write a large count as a person would: 1234 → 1.2 k."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g}"


def format_bytes(count: float) -> str:
    """Write a number of bytes as a person would: 1536 → 1.54 kB."""
    text = format_size(count)
    return f"{text}B" if text[-1].isalpha() else f"{text} bytes"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write how many there are: 1 run, 2 runs; a plural that takes no s is given."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def plain(name: str) -> str:
    """Write a name without the underscores of code."""
    return name.replace("_", " ")


def short_tasks(tasks: Sequence[str]) -> dict[str, str]:
    """Return task → head of its column; full names where short ones would be alike."""
    short = {task: SHORT.get(re.split(r"[-_ ]", task)[0], task) for task in tasks}
    alike = {head for head in short.values() if list(short.values()).count(head) > 1}
    return {task: task if head in alike else head for task, head in short.items()}


def slug(name: str) -> str:
    """Return a name in plain letters, digits and dashes; names that differ may become alike."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]


def file_names(names: Sequence[str]) -> dict[str, str]:
    """Return name → stem of a file: its slug, or its anchor where slugs would be alike."""
    slugs = [slug(name) for name in names]
    return {
        name: each if each and slugs.count(each) == 1 else anchor(name)
        for name, each in zip(names, slugs, strict=True)
    }


def text_block(text: str) -> str:
    """Return text as HTML for a notebook: its own lines, nothing in it read as markup."""
    return f"<pre>{escape(text, quote=False)}</pre>"


def anchor(*names: str) -> str:
    """Return a name for an element of a page: plain letters, and no two alike.

    A name that has other characters than letters, digits and dashes gets a digest too.
    """
    parts = []
    for name in names:
        safe = slug(name)
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
        parts.append(safe if safe.replace("-", "_") == name else f"{safe}-{digest}".strip("-"))
    return "--".join(parts)
