"""Audit every architecture of the installed transformers that a tiny config can build.

    python benchmarks/audit.py            print the table
    python benchmarks/audit.py --check    and exit 1 if a bar is missed
    python benchmarks/audit.py --fill     and write it into docs/audit.md
    python benchmarks/audit.py --only gpt2 llama
    python benchmarks/audit.py --keep rows.jsonl    stopped and started again, it goes on

Bars: no audit crashes, at least BUILT of the types that this environment can hold are built, all in
SECONDS of one core, and every leak has been looked into. Every seeded fault of the tests is found,
its module right in NAMED of them, and no healthy model raises an alarm. A type whose answers differ
from the page's table is named, so that a change of the library is seen.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers

import depthpde as dp
from tiny_models import KINDS, build, model_types, quiet_library

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "audit.md"
BEGIN, END = "<!-- audit: made by benchmarks/audit.py -->", "<!-- audit: end -->"
QUESTIONS = ("future", "padding", "packing", "cache", "neighbour", "memory")
MARKS = {each: each.mark for each in dp.Isolation}
BUILT = 0.95
"""Share of the listed types, without those that need a library which is not installed."""
SECONDS = 300.0
NAMED = 0.95
"""Share of the seeded faults whose module is named right."""
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
    ("blt", "padding"): (False, "hashes of byte groups reach back without reading the mask"),
    ("blt", "cache"): (False, "hashes of byte groups see what is passed, not what was before"),
    ("imagegpt", "padding"): (True, "an image has no padding: the mean is over every site"),
    ("shieldgemma2", "padding"): (False, "reads the last site, which right padding moves away"),
    ("perceiver", "padding"): (True, "positions count padding, and it takes no position_ids"),
}  # fmt: skip
"""Leaks that were looked into: whether the architecture promises nothing else, and why."""


@dataclass(frozen=True)
class Row:
    """One architecture."""

    kind: str
    name: str
    answers: tuple[dp.Answer, ...] = ()
    """In the order of the questions; none if it was not audited."""
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
        return tuple(MARKS[each.verdict] for each in self.answers)

    @property
    def leaks(self) -> tuple[dp.Answer, ...]:
        """The answers that name a leak."""
        return tuple(each for each in self.answers if each.verdict is dp.Isolation.LEAK)

    def to_json(self) -> str:
        """Return one line, from which `read` makes the row again."""
        plain = [each.to_dict() for each in self.answers]
        for each in plain:
            del each["rounding"]
        return json.dumps(asdict(self) | {"answers": plain})

    @classmethod
    def read(cls, line: str) -> Row:
        """Read what `to_json` wrote."""
        values = json.loads(line)
        made = tuple(
            dp.Answer(
                **each | {"verdict": dp.Isolation(each["verdict"]), "notes": tuple(each["notes"])}
            )
            for each in values["answers"]
        )
        return cls(**values | {"answers": made})


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
        return Row(kind, name, unbuilt=why, absent=why.startswith("ImportError"))
    try:
        with quiet_library():
            report = dp.audit(model, batch, causal=True if kind == "causal" else None)
    except Exception:
        return Row(kind, name, crash=traceback.format_exc(limit=-2))
    return Row(kind, name, report.answers)


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
        built = [row for row in own if row.answers]
        cells = []
        for k in range(len(QUESTIONS)):
            seen = Counter(row.marks[k] for row in built)
            cells.append(" ".join(f"{mark}{seen[mark]}" for mark in MARKS.values() if seen[mark]))
        lines.append(f"| {kind} | {len(own)} | {len(built)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _leaks(rows: Sequence[Row]) -> str:
    lines = [
        "| kind | type | question | what moves the output | through | size | by design? |",
        "|---" * 7 + "|",
    ]
    for row in rows:
        for each in row.leaks:
            designed = _judged(row, each.name)
            lines.append(f"| {row.kind} | {row.name} | {each.name} | {_cells(each)} | {designed} |")
    return "\n".join(lines)


def _judged(row: Row, question: str) -> str:
    known = TRIAGE.get((row.name, question))
    return "not looked into" if known is None else f"{'yes' if known[0] else 'no'}: {known[1]}"


def untriaged(rows: Sequence[Row]) -> list[str]:
    """Name the leaks that nobody has looked into."""
    return [
        f"{row.kind} {row.name} {each.name}"
        for row in rows
        for each in row.leaks
        if (row.name, each.name) not in TRIAGE
    ]


def _cells(answer: dp.Answer) -> str:
    what = answer.detail.removesuffix(" moves the output")
    return f"{what} | `{answer.module}` ({answer.kind}) | {answer.size:.1g}"


def _types(rows: Sequence[Row]) -> str:
    lines = ["| kind | type | " + " | ".join(QUESTIONS) + " |", "|---" * (2 + len(QUESTIONS)) + "|"]
    lines += [
        f"| {row.kind} | {row.name} | " + " | ".join(row.marks) + " |"
        for row in rows
        if row.answers
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
        if row.answers
        and f"| {row.kind} | {row.name} | " + " | ".join(row.marks) + " |" not in lines
    ]


def audit_all(listed: Sequence[tuple[str, str, str]], jobs: int, keep: Path | None) -> list[Row]:
    """Audit every type that no kept row stands for, and keep each as it comes."""
    lines = keep.read_text(encoding="utf-8").splitlines() if keep and keep.is_file() else []
    done = {(row.kind, row.name): row for row in map(Row.read, lines)}
    left = [each for each in listed if each[:2] not in done]
    with ProcessPoolExecutor(jobs) as pool:
        for row in pool.map(examine, *zip(*left, strict=True)) if left else ():
            done[row.kind, row.name] = row
            print(row.kind, row.name, *row.marks, row.unbuilt, file=sys.stderr, flush=True)
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(row.to_json() + "\n")
    return [done[each[:2]] for each in listed]


def seeded_faults() -> tuple[str, bool]:
    """Audit every seeded fault of the tests and the healthy models; say what was found."""
    sys.path.append(str(ROOT / "tests"))
    faults: Any = importlib.import_module("isolation.faults")
    found = named = 0
    for each in faults.FAULTS:
        asked, causal = [each.question], faults.CAUSAL.get(each.family)
        model, batch = faults.build(each), faults.batch(each.family)
        answer = dp.audit(model, batch, causal=causal, questions=asked)[each.question]
        found += answer.verdict is dp.Isolation.LEAK
        named += answer.module.removesuffix(".inner") == each.where
    alarms = [
        family
        for family in faults.FAMILIES
        if dp.audit(
            faults.healthy(family), faults.batch(family), causal=faults.CAUSAL.get(family)
        ).leaks
    ]
    count, well = len(faults.FAULTS), len(faults.FAMILIES)
    said = f"{count} seeded faults: {found} found, {named} modules right; "
    said += f"{len(alarms)} false alarms in {well} healthy models"
    return said, found == count and named >= NAMED * count and not alarms


def main() -> int:
    """Audit all, print the table, judge the bars."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--fill", action="store_true", help="write the table into docs/audit.md")
    parser.add_argument("--only", nargs="+", metavar="TYPE", help="types or kinds to audit")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="rows done, to go on from")
    arguments = parser.parse_args()
    listed = [
        each
        for each in model_types()
        if not arguments.only or {each[0], each[1]} & set(arguments.only)
    ]
    rows = audit_all(listed, arguments.jobs, arguments.keep)
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
    built = sum(bool(row.answers) for row in here) / len(here)
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
        said, whole = seeded_faults()
        print(said)
        missed = missed or not whole or built < BUILT or bool(differ and not arguments.fill)
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
