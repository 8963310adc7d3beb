"""A table, written as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from depthpde.pages.svg import element, escape


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One place in a table."""

    text: str
    title: str = ""
    """What a reader sees when pointing at it: n, interval, runs."""
    cell: tuple[str, str] | None = None
    """Task and variant of its runs; a task of "" is all tasks."""
    strong: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Heads, rows and notes; the first column is a name, the others are numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[TableEntry, ...], ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tidy: tuple[Mapping[str, object], ...] = ()
    """The same for machines: one mapping a number, unrounded."""

    def text(self) -> str:
        """Lay the table out for a terminal."""
        lines = [list(self.heads), *([entry.text for entry in row] for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        laid = [
            "  ".join(
                each.ljust(width) if i == 0 else each.rjust(width)
                for i, (each, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        warnings = [f"warning: {each}" for each in self.warnings]
        return "\n".join([self.title, *laid, *self.notes, *warnings]) + "\n"

    def markdown(self, *, notes: bool = True) -> str:
        """Write the table as GitHub's Markdown; warnings are never left out.

        Args:
            notes: Write the title above and the notes below the table; without them the empty
                first head holds what the title ends with, such as ``6 paired seeds``.
        """
        heads = [_markdown(each) for each in self.heads]
        if not notes:
            heads[0] = heads[0] or _markdown(self.title.rpartition(" · ")[2])
        rows = [[_markdown(entry.text, entry.strong) for entry in row] for row in self.rows]
        rule = ["---"] + ["--:"] * (len(heads) - 1)
        lines = ["| " + " | ".join(line) + " |" for line in (heads, rule, *rows)]
        below = [*(self.notes if notes else ()), *self._warned()]
        above = [f"**{_markdown(self.title)}**"] if notes else []
        parts = [*above, "\n".join(lines), *map(_markdown, below)]
        return "\n\n".join(parts) + "\n"

    def latex(self) -> str:
        """Write the table for a paper; needs the packages booktabs and amsmath."""
        heads = [_latex(each) for each in self.heads]
        rows = [[_latex(entry.text, entry.strong) for entry in row] for row in self.rows]
        lines = [
            f"% {' '.join(self.title.split())}",
            rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
            r"\toprule",
            " & ".join(heads) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par\small {_latex(each)}" for each in (*self.notes, *self._warned())),
        ]
        return "\n".join(lines) + "\n"

    def html(self, link: Callable[[tuple[str, str]], str] | None = None, kind: str = "") -> str:
        """Write the table for a page; what comes from records is escaped.

        Args:
            link: Task and variant of a number → where it leads; no links if not given.
            kind: Class of the table.
        """
        heads = "".join(
            element("th", escape(each) or " ", scope="col", kind="number" if i else None)
            for i, each in enumerate(self.heads)
        )
        rows = ["".join(_html(entry, i, link) for i, entry in enumerate(row)) for row in self.rows]
        body = "\n".join(element("tr", row) for row in rows)
        notes = "".join(element("p", escape(each), kind="notes") for each in self.notes)
        warnings = "".join(
            element("p", f"⚠ {escape(each)}", kind="warned") for each in self.warnings
        )
        table = element(
            "table",
            element("caption", escape(self.title)),
            element("thead", element("tr", heads)),
            element("tbody", body) if body else "",
            kind=kind,
        )
        region = {"kind": "scroll", "tabindex": "0", "role": "region", "aria_label": self.title}
        return element("div", table, **region) + warnings + notes

    def csv(self) -> str:
        """Write the numbers for machines: one line each, unrounded; or the table itself."""
        rows: Sequence[Mapping[str, object]] = self.tidy or [
            dict(zip(self.heads, (entry.text for entry in row), strict=True)) for row in self.rows
        ]
        stream = io.StringIO()
        heads = list(rows[0]) if rows else list(self.heads)
        writer = csv.DictWriter(stream, heads, lineterminator="\n")
        writer.writerow({each: _harmless(each) for each in heads})
        writer.writerows({key: _harmless(each) for key, each in row.items()} for row in rows)
        return stream.getvalue()

    def _warned(self) -> list[str]:
        return [f"Warning: {each}" for each in self.warnings]


def _html(entry: TableEntry, index: int, link: Callable[[tuple[str, str]], str] | None) -> str:
    text = escape(entry.text) or " "
    if link is not None and entry.cell is not None:
        text = element("a", text, href=link(entry.cell))
    title = entry.title or None
    if index == 0:
        return element("th", text, scope="row", title=title)
    return element("td", text, kind="number strong" if entry.strong else "number", title=title)


def _markdown(text: str, strong: bool = False) -> str:
    safe = re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", " ".join(text.split()))
    return f"**{safe}**" if strong else safe


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "−": "$-$", "+": "$+$", "±": r"$\pm$", "Δ": r"$\Delta$", "ω": r"$\omega$", "×": r"$\times$",
    "<": "$<$", ">": "$>$", "≤": r"$\leq$", "·": r"$\cdot$", "…": r"\dots{}", "—": "---",
    "*": r"$^{*}$", "²": "$^2$",
}  # fmt: skip


def _latex(text: str, strong: bool = False) -> str:
    safe = "".join(_LATEX.get(each, each) for each in " ".join(text.split()))
    return rf"\textbf{{{safe}}}" if strong else safe


def _harmless(value: object) -> object:
    """Keep a spreadsheet from taking a name for a formula."""
    if isinstance(value, str) and value[:1] in tuple("=+-@\t\r"):
        return f"'{value}"
    return value
