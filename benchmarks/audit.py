"""Audit every architecture of the installed transformers that a tiny config can build.

    python benchmarks/audit.py            print the table
    python benchmarks/audit.py --check    and exit 1 if a bar is missed
    python benchmarks/audit.py --fill     and write it into docs/audit.md
    python benchmarks/audit.py --only gpt2 llama

Bars: no audit crashes, at least BUILT of the types that this environment can hold are built, all in
SECONDS of one core, and every leak has been looked into. A type whose answers differ from the
page's table is named, so that a change of the library is seen.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import transformers

import depthpde as dp
from tiny_models import KINDS, build, model_types, quiet_library

PAGE = Path(__file__).parents[1] / "docs" / "audit.md"
BEGIN, END = "<!-- audit: made by benchmarks/audit.py -->", "<!-- audit: end -->"
QUESTIONS = ("future", "padding", "packing", "cache", "neighbour", "memory")
MARKS = {each: each.mark for each in dp.Isolation}
BUILT = 0.95
"""Share of the listed types, without those that need a library which is not installed."""
SECONDS = 300.0
TRIAGE: dict[tuple[str, str], tuple[bool, str]] = {
    ("xlm", "future"): (True, "`config.causal` is False by default: a masked model"),
    ("flaubert", "future"): (True, "`config.causal` is False by default: a masked model"),
    ("xlnet", "future"): (True, "a model of permutations; without `perm_mask` all is seen"),
    ("cpmant", "future"): (True, "a prefix model: sites of the context see each other"),
    ("cpmant", "padding"): (False, "the mask is made of the ids; the given one is not read"),
    ("rwkv", "padding"): (False, "the mask is accepted and not used; the library warns"),
    ("recurrent_gemma", "padding"): (False, "the recurrence does not read the mask: left padding "
                                     "enters its state"),
    ("convbert", "padding"): (False, "a convolution over sites does not read the mask"),
    ("nystromformer", "padding"): (False, "a convolution over sites does not read the mask"),
    ("mobilebert", "padding"): (True, "each embedding holds those of both neighbours"),
    ("funnel", "padding"): (True, "pooling averages neighbouring sites, padding among them"),
    ("yoso", "padding"): (False, "not explained"),
    ("led", "padding"): (True, "positions count padding, and it takes no position_ids"),
    ("fsmt", "future"): (False, "with `use_cache` (the default) no causal mask is made"),
    ("fsmt", "padding"): (False, "with `use_cache` (the default) no mask of the decoder is made"),
    ("fsmt", "cache"): (False, "the full pass with `use_cache` is not causal; the cached one is"),
    ("prophetnet", "future"): (False, "small, not rounding, and not explained"),
    ("prophetnet", "padding"): (False, "the n-gram streams do not read the mask of their own keys"),
    ("prophetnet", "cache"): (False, "not explained"),
    ("jamba", "cache"): (True, "a recurrent cache takes one token at a time"),
    ("bamba", "cache"): (False, "not explained"),
}  # fmt: skip
"""Leaks that were looked into: whether the architecture promises nothing else, and why."""


@dataclass(frozen=True)
class Row:
    """One architecture."""

    kind: str
    name: str
    report: dp.AuditReport | None
    unbuilt: str = ""
    """Why it could not be built."""
    absent: bool = False
    """Whether it needs a library that is not installed."""
    crash: str = ""
    """Why its audit failed: a fault of ours."""
    seconds: float = 0.0
    """Of one core, building included."""

    @property
    def marks(self) -> tuple[str, ...]:
        """A sign for each question."""
        return tuple(MARKS[each.verdict] for each in self.report.answers) if self.report else ()


def examine(kind: str, name: str, class_name: str) -> Row:
    """Build and audit one architecture, and count the seconds of its core."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    begin = time.process_time()
    return replace(_examine(kind, name, class_name), seconds=time.process_time() - begin)


def _examine(kind: str, name: str, class_name: str) -> Row:
    try:
        model, batch = build(kind, name, class_name)
    except Exception as error:
        why = " ".join(str(error).split())[:120]
        return Row(kind, name, None, unbuilt=why, absent=why.startswith("ImportError"))
    try:
        with quiet_library():
            return Row(
                kind, name, dp.audit(model, batch, causal=True if kind == "causal" else None)
            )
    except Exception:
        return Row(kind, name, None, crash=traceback.format_exc(limit=-2))


def table(rows: Sequence[Row]) -> str:
    """Return what the page shows: the counts, what leaks, and every type."""
    parts = [
        f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}; "
        "✓ isolated, ✗ leak, · by design, – does not apply.",
        _counts(rows),
        "### What leaks",
        _leaks(rows),
        "### Every type",
        _types(rows),
        "### Not built from a tiny config",
        "\n".join(
            f"- {row.kind} `{row.name}`: {_plain(row.unbuilt)}" for row in rows if row.unbuilt
        ),
    ]
    return "\n\n".join(parts)


def _counts(rows: Sequence[Row]) -> str:
    lines = ["| kind | listed | built | " + " | ".join(QUESTIONS) + " |"]
    lines.append("|---" * (3 + len(QUESTIONS)) + "|")
    for kind in KINDS:
        own = [row for row in rows if row.kind == kind]
        built = [row.report for row in own if row.report]
        cells = []
        for name in QUESTIONS:
            seen = Counter(MARKS[each[name].verdict] for each in built)
            cells.append(" ".join(f"{mark}{seen[mark]}" for mark in MARKS.values() if seen[mark]))
        lines.append(f"| {kind} | {len(own)} | {len(built)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _leaks(rows: Sequence[Row]) -> str:
    lines = [
        "| kind | type | question | what moves the output | through | size | by design? |",
        "|---" * 7 + "|",
    ]
    for row in rows:
        for each in row.report.answers if row.report else ():
            if each.verdict is dp.Isolation.LEAK:
                designed = _judged(row, each.name)
                lines.append(
                    f"| {row.kind} | {row.name} | {each.name} | {_cells(each)} | {designed} |"
                )
    return "\n".join(lines)


def _judged(row: Row, question: str) -> str:
    known = TRIAGE.get((row.name, question))
    return "not looked into" if known is None else f"{'yes' if known[0] else 'no'}: {known[1]}"


def untriaged(rows: Sequence[Row]) -> list[str]:
    """Name the leaks that nobody has looked into."""
    return [
        f"{row.kind} {row.name} {each.name}"
        for row in rows
        for each in (row.report.answers if row.report else ())
        if each.verdict is dp.Isolation.LEAK and (row.name, each.name) not in TRIAGE
    ]


def _cells(answer: dp.Answer) -> str:
    what = answer.detail.removesuffix(" moves the output")
    return f"{what} | `{answer.module}` ({answer.kind}) | {answer.size:.1g}"


def _types(rows: Sequence[Row]) -> str:
    lines = ["| kind | type | " + " | ".join(QUESTIONS) + " |", "|---" * (2 + len(QUESTIONS)) + "|"]
    lines += [
        f"| {row.kind} | {row.name} | " + " | ".join(row.marks) + " |" for row in rows if row.report
    ]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("|", "/").replace("<", "(").replace(">", ")")


def changed(rows: Sequence[Row], page: str) -> list[str]:
    """Name the types whose line of the page's table says something else, or that it lacks."""
    lines = {line.strip() for line in page.splitlines()}
    return [
        f"{row.kind} {row.name}"
        for row in rows
        if row.report
        and f"| {row.kind} | {row.name} | " + " | ".join(row.marks) + " |" not in lines
    ]


def main() -> int:
    """Audit all, print the table, judge the bars."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--fill", action="store_true", help="write the table into docs/audit.md")
    parser.add_argument("--only", nargs="+", metavar="TYPE", help="types or kinds to audit")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    arguments = parser.parse_args()
    listed = [
        each
        for each in model_types()
        if not arguments.only or {each[0], each[1]} & set(arguments.only)
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        rows = []
        for row in pool.map(examine, *zip(*listed, strict=True)):
            rows.append(row)
            print(row.kind, row.name, *row.marks, row.unbuilt, file=sys.stderr, flush=True)
    seconds = sum(row.seconds for row in rows)
    text = table(rows)
    print(text)
    page = PAGE.read_text(encoding="utf-8")
    differ = changed(rows, page)
    if arguments.fill:
        before, rest = page.split(BEGIN)
        beside = PAGE.with_suffix(".partial")
        beside.write_text(
            f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8"
        )
        beside.replace(PAGE)
    here = [row for row in rows if not row.absent]
    built = sum(row.report is not None for row in here) / len(here)
    crashes = [row for row in rows if row.crash]
    for row in crashes:
        print(f"crash: {row.kind} {row.name}\n{row.crash}", file=sys.stderr)
    print(f"\n{len(here)} types, {built:.1%} built, {len(crashes)} crashes, {seconds:.0f} s")
    if differ and not arguments.fill:
        print(f"otherwise than docs/audit.md: {', '.join(differ)}")
    open_leaks = untriaged(rows)
    if open_leaks:
        print(f"not looked into: {', '.join(open_leaks)}")
    missed = bool(crashes or open_leaks) or seconds > SECONDS
    if not arguments.only:
        missed = missed or built < BUILT or bool(differ and not arguments.fill)
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
